"""torch_backend.py and new_dawn.py of github.com/davidcpage/cifar10-fast: the step, and the trainings."""

import contextlib
import copy
import sys
from functools import partial
from types import SimpleNamespace

import numpy
import torch
from images import arrays_of
from patching import fill, module
from torch import nn

from stele_suite.tasks import cifar_fast

FORMAT = torch.contiguous_format


def make_step(folder, task, weights, x, y):
    """Return step() -> loss of torch_backend.py, with the network of the last step of the article."""
    sys.modules["core"] = core = module("core", (folder / "core.py").read_text(encoding="utf-8"))
    authors = module("torch_backend", (folder / "torch_backend.py").read_text(encoding="utf-8"))
    groups, chosen = len(x) // task.ghost, cifar_fast.choices(task)
    net = network(authors, task, groups).to(x.device)
    fill(net, {authors_name(name): repeated(name, one, groups) for name, one in weights.items()})
    loss = authors.label_smoothing_loss(chosen.smoothing)
    optimisers = [authors.SGD(*group) for group in groups_of(core, net, task, len(x))]
    average = authors.update_ema(momentum=0.99, update_freq=cifar_fast.AVERAGE_EVERY)
    state = {"model": net, "valid_model": copy.deepcopy(net), "loss": loss, "optimisers": optimisers}
    batch = {"input": x, "target": y}

    def step():
        state.update(authors.forward(True)(batch, state))
        value = state["output"]["loss"].mean().item()
        authors.backward()(batch, state)
        state.update(authors.opt_steps(batch, state))
        average(batch, state)
        return value

    return step


def network(authors, task, groups):
    """Return the network whose normalisation has so many groups."""
    width, chosen = task.width, cifar_fast.choices(task)
    norm = partial(authors.GhostBatchNorm, num_splits=groups, weight_freeze=True)

    def unit(inputs, outputs, size=3, pool=False):
        pools = {"pool": nn.MaxPool2d(2)} if pool else {}
        convolution = nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False)
        return {"conv": convolution, **pools, "norm": norm(outputs), "act": nn.CELU(chosen.alpha)}

    def with_residual(inputs, outputs):
        both = {f"residual{number}": unit(outputs, outputs) for number in (1, 2)}
        add = authors.Add(), ["skip", "residual2/act"]
        return {**unit(inputs, outputs, pool=True), "skip": authors.Identity(), **both, "add": add}

    whiten = nn.Conv2d(3, 27, 3, padding=1, bias=False).requires_grad_(False)
    return authors.Network({
        "whiten": (whiten, ["input"]), "prep": unit(27, width, size=1), "layer1": with_residual(width, 2 * width),
        "layer2": unit(2 * width, 4 * width, pool=True), "layer3": with_residual(4 * width, 8 * width),
        "pool": nn.MaxPool2d(4), "flatten": authors.Flatten(), "linear": nn.Linear(8 * width, 10, bias=False),
        "logits": authors.Mul(chosen.factor),
    })  # fmt: skip


def groups_of(core, net, task, batch):
    """Yield the weights and then the biases, with their schedules, for the sum of the losses of a batch."""
    rates = cifar_fast.learning_rates(task)
    for bias in (False, True):
        held = [value for name, value in net.named_parameters() if value.requires_grad and ("bias" in name) == bias]
        factor, decay = cifar_fast.rate_and_decay(task, "norm.bias" if bias else "weight")
        yield (
            held,
            {
                "lr": lambda step, factor=factor: float(rates[step - 1]) * factor / batch,
                "weight_decay": core.Const(decay * batch),
                "momentum": core.Const(task.momentum),
            },
        )


def authors_name(name):
    *path, last = name.split(".")
    return "_".join(path) + "." + last


def repeated(name, array, groups):
    return numpy.tile(array, groups) if ".running_" in name else array  # the authors' are those of each group


def make_training(folder, arguments, paths):
    """Return train(seed) -> (seconds of each epoch, seconds of the last evaluation, accuracy).

    new_dawn.py is the script of the article's last step.
    """
    exact, kept = arguments.device == "cpu", []
    for name in ("core", "torch_backend", "dawn_utils"):
        sys.modules[name] = module(name, (folder / f"{name}.py").read_text(encoding="utf-8"), exact=exact)
    text = (folder / "new_dawn.py").read_text(encoding="utf-8").rpartition("main()")[0]
    data = {
        {"train": "train", "test": "valid"}[split]: {"data": images, "targets": labels.astype(numpy.int64)}
        for split, (images, labels) in arrays_of(paths, arguments.images).items()
    }
    loaded = module("new_dawn", text, exact=exact)
    parser = SimpleNamespace(parse_args=lambda: SimpleNamespace(data_dir="", log_dir=arguments.scratch))
    loaded.__dict__.update(parser=parser, cifar10=lambda root: data, tsv=lambda log: kept.extend(log) or "")

    def train(seed):
        torch.manual_seed(seed)
        numpy.random.seed(seed)
        kept.clear()
        with contextlib.redirect_stdout(None):
            loaded.main()
        last = kept[-1]["valid"]
        return ([one["train"]["time"] for one in kept], last["time"], float(last["acc"]))

    return train
