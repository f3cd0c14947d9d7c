"""What one recipe computes on a small fixed batch, for the host to hold against the golden numbers.

infer    {"task": hash, "logits": (batch, classes) or features}
train    {"task": hash, "loss": of the first step, "gradient_norms": {parameter: norm}, "losses": of each step}
Dropout is off in training, where no two frameworks draw the same masks, and on, to be ignored, in inference.
"""

import hashlib

import numpy

from stele_worker import frameworks, recipes, tasks
from stele_worker.measurement import arranged

BATCH = {"cnn": 16, "gru": 16, "resnet50": 2}
STEPS = {"cnn": 10, "gru": 10, "resnet50": 1}


def check(framework, task, phase):
    """Compute the numbers of ``phase``, "train" or "infer", from the Task's seeded weights."""
    module, recipe = tasks.load(task.name), recipes.load(task.name, frameworks.name(framework))
    weights = module.weights(task.seed)
    x, y = module.example(BATCH[task.name], task.seed)
    numbers = {"task": fingerprint(task, weights, x, y)}
    x, y = framework.put(arranged(x, recipe.LAYOUT)), framework.put(y)
    numbers.update(PHASES[phase](framework, recipe, task, weights, x, y))
    return numbers


def inference(framework, recipe, task, weights, x, y):
    step = recipe.inference_step(recipe.load(recipe.network(task), weights), task)
    return {"logits": framework.fetch(step(x))}


def training(framework, recipe, task, weights, x, y):
    task = tasks.without_dropout(task)
    loss, gradients = recipe.gradients(recipe.load(recipe.network(task), weights), task)(x, y)
    norms = {name: norm(framework.fetch(gradient)) for name, gradient in gradients.items()}
    step = recipe.training_step(recipe.load(recipe.network(task), weights), task)
    losses = [float(framework.fetch(step(x, y))) for _ in range(STEPS[task.name])]
    return {"loss": float(framework.fetch(loss)), "gradient_norms": norms, "losses": losses}


PHASES = {"train": training, "infer": inference}


def norm(array):
    """The Euclidean norm, summed in float64."""
    return float(numpy.sqrt((numpy.asarray(array, numpy.float64) ** 2).sum()))


def fingerprint(task, weights, x, y):
    """A short hash of all that the golden numbers follow from: constants, initial weights and batch."""
    sizes = {
        "train",
        "test",
        "epochs",
        "batch",
        "dtype",
    }  # of a scale or a precision: no part of the mathematics
    constants = [item for item in task._asdict().items() if item[0] not in sizes]
    digest = hashlib.sha256(repr(constants).encode())
    for array in list(weights.values()) + [x, y]:
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]
