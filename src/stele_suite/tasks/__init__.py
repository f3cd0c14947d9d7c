"""The Tasks, independent of any framework: sizes, hyper-parameters, seeded weights and batch order, in numpy.

A Task is an immutable value. Its module has

Task                    a named tuple, or a function that returns one: what a Task is
SCALES                  {scale: fields of the Task}. A smaller scale has smaller sizes, but the same structure. The
                        scale "parity" is that of the golden numbers
TARGETS                 {scale: accuracy, a fraction} for the time to accuracy; default: none
TRICKS                  {scale: {trick: epochs}} in the order in which the ablation adds them to ``task.tricks``, with
                        the epochs that the Task then needs; the first one, BASELINE, is the Task without tricks
WITHOUT                 {framework: {trick: reason}} for tricks that a framework does not have
UNIT, units(task)       what is counted in a second, and how many of it a sample has; default: one
PARITY_SEED             the seed of the weights and the batch of the parity check
PARITY_STEPS            the optimizer steps of the parity check
FACTOR                  {rung: factor on the tolerance of the ladder}; default: 1
FRAMEWORKS              the frameworks that have a recipe; default: all
PHASES                  "train" and "infer"; default: both
PRETRAINED              whether its weights can be read from a file
weights(task)           named float32 arrays, from the seed
inputs(raw)             the input of the network, from the samples of the Task's data; only if it has data
fitted(task, arrays, x) the weights with those that are computed from the inputs of the training set; default: none are
augmentation_table(task, epoch)  the crops, flips and squares of an epoch; only if the Task augments
OPEN                    the frameworks with an open division, which draw crops and initial weights; default: none
augmentation_plan(task) the crops, flips and squares of the open division
redrawn(task, arrays, draw)  the weights of the open division, where draw(shape) is the framework's initialisation
augment(task, arrays, epoch)  the samples of an epoch, if the Task augments on the host: on_host(task)
example(task, samples)  noise of the form of its samples: the inputs in order, then the target
samples(task, part)     generated samples of "train" or "test" whose labels have a meaning; default: ``example``
correct(output, target) how many answers of a batch are right; default: how often the largest logit is the target's
SCORE, score(outputs, targets)  the name of a number from 0 to 1, and its value for all samples of the test set, in
                        place of the fraction of right answers

Random numbers come from ``numpy.random.RandomState``, whose stream is frozen, so that every Python from 3.6 on makes
the same arrays, bit for bit.
"""

import importlib
from collections import OrderedDict

import numpy

NAMES = (
    "cnn",
    "resnet50",
    "gru",
    "mobilenetv2",
    "transformer",
    "encoder",
    "decoder",
    "generation",
    "chain",
    "stack",
    "densenet121",
    "cifar-fast",
    "cifar-airbench",
)
SCALES = ("smoke", "quick", "paper")
LOADED = ("cnn",)  # whose images each framework's own loader can read: see stele_worker.loaders
BASELINE = "baseline"
MISSING = {"one-bias": ("gru.hidden_bias",)}  # form -> parameters that a Task in this form does not have


def load(name):
    """Return the module of a Task; a hyphen in the Task's name is an underscore in that of the module."""
    return importlib.import_module(__name__ + "." + name.replace("-", "_"))


def make(name, scale, **changes):
    """Return the Task ``name`` at ``scale``, with ``changes`` of fields such as ``seed`` or ``dtype``."""
    module = load(name)
    return module.Task(**module.SCALES[scale])._replace(**changes)


def weights(task):
    """Return the seeded weights of a Task in its form: named float32 arrays."""
    arrays = load(task.name).weights(task)
    missing = MISSING.get(getattr(task, "form", None), ())
    return OrderedDict((name, array) for name, array in arrays.items() if name not in missing)


def unit(name):
    """Return what is counted in a second of a Task; for a user's task or model, samples."""
    return load(name).UNIT if name in NAMES else "samples"


def units(name, scale):
    """Return how many of its ``unit`` a sample of a Task has."""
    count = getattr(load(name), "units", None) if name in NAMES else None
    return 1 if count is None else count(make(name, scale))


def tricks(name, scale):
    """Return the tricks of a Task in their order, with the epochs after each: {trick: epochs}; {} if it has none."""
    return getattr(load(name), "TRICKS", {}).get(scale, {}) if name in NAMES else {}


def why_without(name, framework, trick):
    """Return why a framework does not have a trick of a Task, or None if it has it."""
    return getattr(load(name), "WITHOUT", {}).get(framework, {}).get(trick)


def target(name, scale):
    """Return the accuracy that a training of a Task at ``scale`` should reach; None if the Task has none."""
    return getattr(load(name), "TARGETS", {}).get(scale) if name in NAMES else None


def pretrained(name):
    """Return whether the weights of a Task can be read from a file."""
    return name in NAMES and getattr(load(name), "PRETRAINED", False)


def correct(name, output, target):
    """Return how many answers of a batch are right, from the outputs of the network and the targets."""
    return getattr(load(name), "correct", count_largest)(output, target)


def has_meaning(name):
    """Return whether the labels of a Task have a meaning: it has data, or generates samples with a meaning."""
    module = load(name)
    return make(name, "paper").data is not None or hasattr(module, "samples")


def score_name(name):
    """Return what the accuracy of a Task is called."""
    return getattr(load(name), "SCORE", "accuracy") if name in NAMES else "accuracy"


def count_largest(logits, labels):
    return int((logits.argmax(1) == labels).sum())


def why_absent(name, framework, phase):
    """Return why a framework has no recipe for a phase of a Task, or None if it has one."""
    if name not in NAMES:
        return None
    module = load(name)
    if framework not in getattr(module, "FRAMEWORKS", (framework,)):
        frameworks = ", ".join(each for each in module.FRAMEWORKS if each != "numpy")
        return "the task {} has recipes for {} only".format(name, frameworks)
    if phase not in getattr(module, "PHASES", (phase,)):
        return "the task {} has {} only".format(name, " and ".join(module.PHASES))
    return None


def why_closed(name, framework):
    """Return why a Task has no open division in a framework, or None if it has one."""
    frameworks = getattr(load(name), "OPEN", ())
    if not frameworks:
        return "the task {} has the closed division only".format(name)
    if framework not in frameworks:
        return "the task {} has an open division for {} only".format(name, ", ".join(frameworks))
    return None


def forms(name):
    """Return the variants of a Task, for frameworks that lack the Task's own form."""
    return getattr(load(name), "FORMS", ())


def subset(size, total):
    """Return the rows of the ``size`` of ``total`` samples that a scale uses, the same for every seed."""
    return numpy.random.RandomState(0).permutation(total)[:size]


def batch_order(task, epoch):
    """Return the rows of the training set for each step of an epoch: int64 of shape (steps, batch).

    Each epoch has a different permutation. Rows that do not fill a batch are dropped.
    """
    steps = task.train // task.batch
    order = numpy.random.RandomState([task.seed, epoch]).permutation(task.train)
    return order[: steps * task.batch].reshape(steps, task.batch)


def without_dropout(task):
    """Return the Task with all dropout rates 0, for parity: no two frameworks draw the same masks."""
    return task._replace(dropout=tuple(0.0 for _ in task.dropout))
