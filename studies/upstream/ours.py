"""The recipe in PyTorch: its step, and its trainings."""

import functools

from images import sizes

from stele_suite import tasks
from stele_worker import frameworks, recipes, time_to_accuracy
from stele_worker.subjects import TaskSubject

SETTINGS = {"deterministic": False, "autotune": True, "tuned": True, "seed": 0}
TEST_BATCH = 2000  # images of a step of the evaluation, as in airbench
HOST = time_to_accuracy.Host(lambda **fields: None, None)


def configure(arguments, precision, mode):
    """Return the support of PyTorch."""
    support = frameworks.load("torch")
    place = {"device": arguments.device, "threads": arguments.threads}
    support.configure({**SETTINGS, **place, "precision": precision, "mode": mode})
    return support


def make_step(subject, weights, arrays, support):
    """Return step() -> loss of the recipe, from ``weights``, with a batch of ``arrays``."""
    net = subject.recipe.load(subject.recipe.network(subject.task), weights)
    step = subject.recipe.training_step(net, subject.task)
    inputs = [support.put(one) for one in subject.arrange(arrays)]
    return lambda: float(step(*inputs))


def make_training(arguments, paths):
    """Return train(seed) -> (seconds of each epoch, seconds of the last evaluation, accuracy) of the recipe."""
    precision = "fp32" if arguments.dtype == "float32" else "bf16"
    support = configure(arguments, precision, arguments.mode)
    recipe = recipes.load(arguments.task, "torch")
    recipe = recipe if arguments.mode == "eager" else Compiled(recipe)
    changes = {"dtype": arguments.dtype, "test_batch": TEST_BATCH, **sizes(arguments.images)}

    def task(seed):
        return tasks.make(arguments.task, "gpu", seed=seed, **changes)

    samples = functools.cache(lambda part: TaskSubject(task(0), recipe).samples(part, paths))

    def train(seed):
        subject = TaskSubject(task(seed), recipe)
        subject.samples = lambda part, data: samples(part)  # read and converted once
        outcome = time_to_accuracy.train(support, subject, HOST, paths, None)
        return (
            list(outcome["steps"]["seconds"]),
            outcome["epochs"]["evaluation_seconds"][-1],
            outcome["learning"]["accuracy"],
        )

    return train


class Compiled:
    """A recipe whose network and steps are made once, so that they are compiled once.

    Each training starts again from its weights, with the state that the optimiser had at first.
    """

    def __init__(self, recipe):
        self.recipe, self.net, self.step, self.evaluation = recipe, None, None, None

    def __getattr__(self, name):
        return getattr(self.recipe, name)

    def network(self, task):
        self.net = self.net or self.recipe.network(task)
        return self.net

    def training_step(self, net, task):
        if self.step is None:
            self.step = self.recipe.training_step(net, task)
            self.start = self.step.state()
        weights = {"net." + name: value.cpu().numpy() for name, value in net.state_dict().items()}
        self.step.restore({**self.start, **weights})
        return self.step

    def evaluation_step(self, net, task):
        self.evaluation = self.evaluation or self.recipe.evaluation_step(net, task)
        net.train()
        return self.evaluation
