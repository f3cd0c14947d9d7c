"""Are the recipes of cifar-fast and cifar-airbench as fast as their authors' code, and do they compute the same?

    python perf_tests/upstream.py cifar-fast FOLDER
    python perf_tests/upstream.py cifar-airbench FOLDER

FOLDER is a clone of github.com/davidcpage/cifar10-fast or github.com/KellerJordan/cifar10-airbench. The code in it is
executed; nothing of it is part of this project. Both sides start from the same weights and take the same batch of
noise, in float32, in turns, step by step. Prints the largest relative difference of the losses, and the ratio
of the durations. At the learning rates of these tasks, rounding grows about tenfold in a step.
"""

import argparse
import re
import sys
import types
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from stele.measuring.settings import DEVICES
from stele_worker import frameworks, recipes, tasks
from stele_worker.subjects import TaskSubject
from stele_worker.tasks import cifar_airbench, cifar_fast

BATCH = {"cifar-fast": 512, "cifar-airbench": 500}
SETTINGS = {"precision": "fp32", "deterministic": False, "autotune": True, "seed": 0}
# spellings of PyTorch 1.0, whose convolutions return contiguous images, of Python 3.7 and of NumPy 1.19; and what is
# not used
OLD_SPELLINGS = (
    (r"add_\((\w+), (\w+)\)", r"add_(\2, alpha=\1)"),
    (r"torch\.symeig\((\w+|Σ), eigenvectors=True\)", r"torch.linalg.eigh(\1)"),
    (r"(x\.permute\(.*\))", r"\1.contiguous()"),
    (r"np\.float\b", "float"),
    (r"import pandas as pd\n", ""),
    (r" is 1:", " == 1:"),
    (r"(?m)^import torchvision.*$", ""),
)
# float32 on a processor without a compiler
EXACT = (
    (r"torch\.cuda\.synchronize\b(\(\))?", "None"),
    (r"\.cuda\(\)", ""),
    (r"@torch.compile\n", ""),
    (r"\.half\(\)|\.bfloat16\(\)", ".float()"),
    (r"\.float16", ".float32"),
)


def module(name, text, *, exact=True, changes=()):
    """Return the module that the text of a file makes, with ``changes`` of patterns.

    With ``exact``, it computes in float32 without a compiler.
    """
    for pattern, replacement in (*changes, *OLD_SPELLINGS, *(EXACT if exact else ())):
        text = re.sub(pattern, replacement, text)
    made = types.ModuleType(name)
    exec(compile(text, name, "exec"), made.__dict__)
    return made


def airbench_text(folder):
    """Return airbench94_muon.py without its start, which reads the file, and without its end, which trains."""
    text = (folder / "airbench94_muon.py").read_text(encoding="utf-8")
    return "import os\n" + text[text.index("from math import ceil\n") :].partition("\nif __name__")[0]


def airbench(folder, task, weights, x, y):
    """Return step() -> loss of airbench94_muon.py."""
    upstream = module("airbench", airbench_text(folder))
    net = upstream.CifarNet().to(x.device, memory_format=torch.channels_last).train()
    names = {"linear.weight": "head.weight"}
    fill(net, {names.get(name, name.replace("group", "layers.")): one for name, one in weights.items()})
    others = [
        ("whiten.bias", cifar_airbench.DECAY),
        ("norm", cifar_airbench.DECAY),
        ("head", cifar_airbench.DECAY),
    ]
    groups = []
    for part, decay in others:
        rate = (task.head_rate if part == "head" else task.bias_rate) / 2000
        held = [value for name, value in net.named_parameters() if part in name and value.requires_grad]
        groups.append({"params": held, "lr": rate, "weight_decay": 2000 * decay / rate, "first": rate})
    sgd = torch.optim.SGD(groups, momentum=task.momentum, nesterov=True, fused=True)
    filters = [value for value in net.parameters() if value.ndim == 4 and value.requires_grad]
    muon = upstream.Muon(filters, lr=task.muon_rate, momentum=task.muon_momentum, nesterov=True)
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


def fast(folder, task, weights, x, y):
    """Return step() -> loss of torch_backend.py, with the network of the last step of the article."""
    sys.modules["core"] = core = module("core", (folder / "core.py").read_text(encoding="utf-8"))
    upstream = module("torch_backend", (folder / "torch_backend.py").read_text(encoding="utf-8"))
    groups, width, chosen = len(x) // task.ghost, task.width, cifar_fast.choices(task)
    norm = partial(upstream.GhostBatchNorm, num_splits=groups, weight_freeze=True)

    def unit(inputs, outputs, size=3, pool=False):
        pools = {"pool": nn.MaxPool2d(2)} if pool else {}
        convolution = nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False)
        return {"conv": convolution, **pools, "norm": norm(outputs), "act": nn.CELU(chosen.alpha)}

    def with_residual(inputs, outputs):
        both = {f"residual{number}": unit(outputs, outputs) for number in (1, 2)}
        add = upstream.Add(), ["skip", "residual2/act"]
        return {**unit(inputs, outputs, pool=True), "skip": upstream.Identity(), **both, "add": add}

    whiten = nn.Conv2d(3, 27, 3, padding=1, bias=False).requires_grad_(False)
    net = upstream.Network({
        "whiten": (whiten, ["input"]), "prep": unit(27, width, size=1), "layer1": with_residual(width, 2 * width),
        "layer2": unit(2 * width, 4 * width, pool=True), "layer3": with_residual(4 * width, 8 * width),
        "pool": nn.MaxPool2d(4), "flatten": upstream.Flatten(), "linear": nn.Linear(8 * width, 10, bias=False),
        "logits": upstream.Mul(chosen.factor),
    })  # fmt: skip
    net.to(x.device)
    fill(net, {upstream_name(name): repeated(name, one, groups) for name, one in weights.items()})
    rates = cifar_fast.learning_rates(task)
    optimisers = []
    for bias in (False, True):
        held = [
            value
            for name, value in net.named_parameters()
            if value.requires_grad and ("bias" in name) == bias
        ]
        factor, decay = cifar_fast.rate_and_decay(task, "norm.bias" if bias else "weight")
        schedule = {
            "lr": lambda step, factor=factor: (
                float(rates[step - 1]) * factor / len(x)
            ),  # for the sum of the losses
            "weight_decay": core.Const(decay * len(x)),
            "momentum": core.Const(task.momentum),
        }
        optimisers.append(upstream.SGD(held, schedule))
    loss = upstream.label_smoothing_loss(chosen.smoothing)
    state, batch = {"model": net, "loss": loss, "optimisers": optimisers}, {"input": x, "target": y}

    def step():
        state.update(upstream.forward(True)(batch, state))
        value = state["output"]["loss"].mean().item()
        upstream.backward()(batch, state)
        state.update(upstream.opt_steps(batch, state))
        return value

    return step


def upstream_name(name):
    *path, last = name.split(".")
    return "_".join(path) + "." + last


def repeated(name, array, groups):
    return (
        numpy.tile(array, groups) if ".running_" in name else array
    )  # upstream has statistics of each group


def fill(net, arrays):
    held = net.state_dict()
    for name, array in arrays.items():
        held[name].copy_(torch.from_numpy(array))


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=BATCH)
    parser.add_argument("folder", type=Path, help="a clone of upstream's repository")
    parser.add_argument("--batch", type=int, help=f"images of a step; default: {BATCH}")
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=12, help="of each side; default: %(default)s")
    return parser.parse_args()


def main():
    arguments = parse()
    batch = arguments.batch or BATCH[arguments.task]
    torch_support = frameworks.load("torch")
    torch_support.configure(dict(SETTINGS, device=arguments.device, threads=arguments.threads, mode="eager"))
    steps = 100 * batch  # so many images that the learning rate is that of the first steps of an epoch
    task = tasks.make(arguments.task, "cpu-full", batch=batch, train=steps)
    subject = TaskSubject(task, recipes.load(task.name, "torch"))
    weights = subject.weights()
    x, y = tasks.load(task.name).example(task, batch)
    images = torch.from_numpy(x).permute(0, 3, 1, 2).contiguous().to(arguments.device)
    if task.name == "cifar-airbench":
        images = images.contiguous(memory_format=torch.channels_last)
    upstream = {"cifar-fast": fast, "cifar-airbench": airbench}[task.name]
    theirs = upstream(
        arguments.folder, task, weights, images, torch.from_numpy(y).long().to(arguments.device)
    )
    net = subject.recipe.load(subject.recipe.network(task), weights)
    own, arrays = (
        subject.recipe.training_step(net, task),
        [torch_support.put(one) for one in subject.arrange((x, y))],
    )
    compare(lambda: float(own(*arrays)), theirs, arguments.steps)


def compare(ours, theirs, steps):
    """Run both in turns and print the difference of their losses and the ratio of their durations."""
    losses, seconds = {ours: [], theirs: []}, {ours: [], theirs: []}
    for number in range(steps):
        for step in (ours, theirs) if number % 2 else (theirs, ours):
            began = perf_counter()
            losses[step].append(step())
            seconds[step].append(perf_counter() - began)
    differences = [abs(a / b - 1) for a, b in zip(losses[ours], losses[theirs], strict=True)]
    ratios = numpy.array(seconds[ours][2:]) / numpy.array(seconds[theirs][2:])  # the first steps allocate
    draws = numpy.median(numpy.random.default_rng(0).choice(ratios, (2000, len(ratios))), axis=1)
    low, high = numpy.quantile(draws, (0.025, 0.975))
    print(f"losses: relative differences {' '.join(f'{one:.0e}' for one in differences)}")
    print(
        f"seconds of a step, ours / upstream: {numpy.median(ratios):.3f} [{low:.3f} {high:.3f}], {len(ratios)} turns"
    )
    print(f"medians: {numpy.median(seconds[ours]):.3f} s, upstream {numpy.median(seconds[theirs]):.3f} s")


if __name__ == "__main__":
    main()
