"""What one recipe computes on a small fixed batch, for the host to hold against the golden numbers.

Each phase answers with the Task's fingerprint, "task", and

infer    unequal     parameters that read back otherwise than they were loaded: {parameter: how, see ``unequal``}
         layers      sketches of the layers' outputs: {layer: sketch}; None where the recipe cannot show them
         logits      (batch, classes), or features
         repeats     whether a second call gave the same, see ``alike``
         tracked     whether a gradient could be taken through the logits; None where values cannot say
train    unequal     as above
         loss        of the first step
         gradients   {parameter: sketch}
         updates       how far every parameter has moved: {"1": {parameter: sketch}, "10": ...}, after so many steps
         losses      of each step
repeat   losses      with dropout, from the framework's seed
         digest      of all parameters after those steps

Dropout is off in train, where no two frameworks draw the same masks, and on, to be ignored, in infer.
"""

import hashlib

import numpy

from stele_worker import frameworks, recipes, tasks
from stele_worker.measurement import arranged
from stele_worker.sketch import sketch

BATCH = {"cnn": 16, "gru": 16, "resnet50": 2}
STEPS = {"cnn": 20, "gru": 20, "resnet50": 1}
SHOWN = (1, 10)  # steps after which the parameters are looked at
REPEATED = 5  # steps of which the bits are compared


def check(framework, task, phase):
    """Compute the numbers of ``phase``, "infer", "train" or "repeat", from the Task's seeded weights."""
    module, recipe = tasks.load(task.name), recipes.load(task.name, frameworks.name(framework))
    weights = tasks.weights(task)
    x, y = module.example(BATCH[task.name], task.seed)
    numbers = {"task": fingerprint(task, weights, x, y)}
    x, y = framework.put(arranged(x, recipe.LAYOUT)), framework.put(y)
    numbers.update(PHASES[phase](framework, recipe, task, weights, x, y))
    return numbers


def inference(framework, recipe, task, weights, x, y):
    net = recipe.load(recipe.network(task), weights)
    step = recipe.inference_step(net, task)
    value = step(x)
    logits, again = framework.fetch(value), framework.fetch(step(x))
    return {
        "unequal": unequal(parameters(framework, recipe, net), held(recipe, net, weights)),
        "layers": activations(framework, recipe, net, task, x),
        "logits": logits,
        "repeats": alike(logits, again),
        "tracked": framework.tracked(value) if hasattr(framework, "tracked") else None,
    }


def held(recipe, net, weights):
    """Of the Task's parameters those that a recipe should hold: all, or if it only infers, what inference needs."""
    if hasattr(recipe, "training_step"):
        return weights
    return {name: array for name, array in weights.items() if name in recipe.stored(net)}


def activations(framework, recipe, net, task, x):
    if not hasattr(recipe, "activations"):
        return None
    outputs = recipe.activations(net, task)(x)
    return {name: sketch(framework.fetch(output)) for name, output in outputs.items()}


def training(framework, recipe, task, weights, x, y):
    task = tasks.without_dropout(task)
    net = recipe.load(recipe.network(task), weights)
    differing = unequal(parameters(framework, recipe, net), weights)
    loss, gradients = recipe.gradients(net, task)(x, y)
    numbers = {
        "unequal": differing,
        "loss": float(framework.fetch(loss)),
        "gradients": {name: sketch(g) for name, g in neutral(framework, recipe, gradients).items()},
    }
    net = recipe.load(recipe.network(task), weights)
    step = recipe.training_step(net, task)
    updates, losses = {}, []
    for count in range(1, STEPS[task.name] + 1):
        losses.append(stepped(framework, step, x, y))
        if count in SHOWN:
            updates[str(count)] = updates_since(parameters(framework, recipe, net), weights, gradients)
    return dict(numbers, updates=updates, losses=losses)


def repeat(framework, recipe, task, weights, x, y):
    net = recipe.load(recipe.network(task), weights)
    step = recipe.training_step(net, task)
    losses = [stepped(framework, step, x, y) for _ in range(REPEATED)]
    return {"losses": losses, "digest": digest(parameters(framework, recipe, net))}


def alike(first, second):
    """Whether two calls differ by at most a thousandth of the largest number: threads may sum in another order."""
    return bool(abs(first - second).max() <= 1e-3 * abs(first).max())


def stepped(framework, step, x, y):
    """The loss of a step that has ended: MXNet still writes statistics when the loss can be read."""
    loss = step(x, y)
    framework.wait(loss)
    return float(framework.fetch(loss))


def parameters(framework, recipe, net):
    """What a network holds: {parameter: array}, as in the Task."""
    return neutral(framework, recipe, recipe.stored(net))


def neutral(framework, recipe, values):
    """Values of parameters as the framework has them, as numpy arrays in the Task's layout."""
    return {name: recipe.neutral(name, framework.fetch(value)) for name, value in values.items()}


PHASES = {"infer": inference, "train": training, "repeat": repeat}


def unequal(stored, weights):
    """{parameter: {"differ": how many of its numbers, "of": all, "order": whether they are the same in another order,
    "deviation": their standard deviation, "expected": the Task's}} for each that was not read back bit for bit.

    A parameter that is missing or of another shape differs in all of its numbers.
    """
    found = {}
    for name, array in weights.items():
        theirs = numpy.asarray(stored.get(name, ()), numpy.float32)
        if numpy.array_equal(theirs, array):
            continue
        same_shape = theirs.shape == array.shape
        found[name] = {
            "differ": int((theirs != array).sum()) if same_shape else array.size,
            "of": array.size,
            "order": numpy.array_equal(numpy.sort(theirs, axis=None), numpy.sort(array, axis=None)),
            "deviation": float(theirs.std()) if theirs.size else None,
            "expected": float(array.std()),
        }
    return found


def updates_since(stored, weights, gradients):
    """How far each parameter that has a gradient is from where it started: {parameter: sketch}."""
    return {name: sketch(numpy.asarray(stored[name], numpy.float64) - weights[name]) for name in gradients}


def digest(arrays):
    """A hash of the bits of named arrays."""
    found = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        found.update(name.encode() + numpy.ascontiguousarray(array, numpy.float32).tobytes())
    return found.hexdigest()


def fingerprint(task, weights, x, y):
    """A short hash of all that the golden numbers follow from: constants, initial weights and batch."""
    # of a scale or a precision: no part of the mathematics
    sizes = {"train", "test", "epochs", "batch", "dtype"}
    constants = [item for item in task._asdict().items() if item[0] not in sizes]
    digest = hashlib.sha256(repr(constants).encode())
    for array in list(weights.values()) + [x, y]:
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]
