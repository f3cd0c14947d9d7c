"""airbench94_muon.py of github.com/KellerJordan/cifar10-airbench: its step, and its trainings."""

import contextlib
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace

import torch
from images import arrays_of
from patching import fill, module
from torch.nn.functional import cross_entropy

from stele_suite.tasks import cifar_airbench

FORMAT = torch.channels_last
# what it requires of CUDA, for any device
CUDA_ONLY = (
    (r"torch\.cuda\.Event", "Event"),
    (r'torch\.device\("cuda"\)', "torch.device(DEVICE)"),
)


def text_of(folder):
    """Return airbench94_muon.py without its start, which reads the file, and without its end, which trains."""
    text = (folder / "airbench94_muon.py").read_text(encoding="utf-8")
    return "import os\n" + text[text.index("from math import ceil\n") :].partition("\nif __name__")[0]


def make_step(folder, task, weights, x, y):
    """Return step() -> loss of airbench94_muon.py."""
    authors = module("airbench", text_of(folder))
    net = authors.CifarNet().to(x.device, memory_format=torch.channels_last).train()
    names = {"linear.weight": "head.weight"}
    fill(net, {names.get(name, name.replace("group", "layers.")): one for name, one in weights.items()})
    sgd = torch.optim.SGD(groups_of(net, task), momentum=task.momentum, nesterov=True, fused=True)
    filters = [value for value in net.parameters() if value.ndim == 4 and value.requires_grad]
    muon = authors.Muon(filters, lr=task.muon_rate, momentum=task.muon_momentum, nesterov=True)
    rates, steps = cifar_airbench.learning_rates(task), 0

    def step():
        nonlocal steps
        now, whiten = rates[:, steps].tolist()
        loss = cross_entropy(net(x), y, label_smoothing=task.smoothing, reduction="sum")
        (loss * (2000 / len(x))).backward()
        for number, group in enumerate(sgd.param_groups):
            group["lr"] = group["first"] * (now if number else whiten)
        muon.param_groups[0]["lr"] = task.muon_rate * now
        for optimiser in (sgd, muon):
            optimiser.step()
        net.zero_grad(set_to_none=True)
        steps += 1
        return loss.item() / len(x)

    return step


def groups_of(net, task):
    """Return the groups of parameters of SGD, as airbench94_muon.py has them."""
    groups = []
    for part in ("whiten.bias", "norm", "head"):
        rate = (task.head_rate if part == "head" else task.bias_rate) / 2000
        held = [value for name, value in net.named_parameters() if part in name and value.requires_grad]
        decay = 2000 * cifar_airbench.DECAY / rate
        groups.append({"params": held, "lr": rate, "weight_decay": decay, "first": rate})
    return groups


def make_training(folder, arguments, paths):
    """Return train(seed) -> (seconds of each epoch, seconds of the last evaluation, accuracy).

    The clock of airbench94_muon.py also runs while it computes its filters.
    """
    exact, intervals = arguments.device == "cpu", []
    loaded = module("airbench", text_of(folder), exact=exact, changes=CUDA_ONLY)
    loaded.__dict__.update(DEVICE=arguments.device, T=SimpleNamespace(Normalize=Normalize),
                           Event=lambda enable_timing: Event(intervals))  # fmt: skip
    place = Path(arguments.scratch) / "cifar10"
    place.mkdir()
    for split, (images, labels) in arrays_of(paths, arguments.images).items():
        held = {"images": torch.from_numpy(images), "labels": torch.from_numpy(labels).long(), "classes": []}
        torch.save(held, place / f"{split}.pt")
    net = loaded.CifarNet().to(arguments.device, memory_format=torch.channels_last)
    if arguments.device == "cuda":
        net.compile(mode="max-autotune")

    def train(seed):
        torch.manual_seed(seed)
        intervals.clear()
        with contextlib.chdir(arguments.scratch), contextlib.redirect_stdout(None):
            accuracy = loaded.main(seed, net)
        return (intervals[1:-1], intervals[-1], accuracy)

    return train


class Normalize:
    """torchvision's transform, which is all that airbench needs of torchvision."""

    def __init__(self, mean, deviation):
        self.mean, self.deviation = mean.view(3, 1, 1), deviation.view(3, 1, 1)

    def __call__(self, images):
        mean, deviation = (one.to(images.device, images.dtype) for one in (self.mean, self.deviation))
        return (images - mean) / deviation


class Event:
    """An event of CUDA, on any device: airbench measures with two. The time between them is kept in a list."""

    def __init__(self, intervals):
        self.intervals = intervals

    def record(self):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.when = perf_counter()

    def elapsed_time(self, other):
        self.intervals.append(other.when - self.when)
        return 1e3 * self.intervals[-1]
