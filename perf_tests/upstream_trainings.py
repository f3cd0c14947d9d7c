"""Do the recipes of cifar-fast and cifar-airbench train as fast as their authors' code, and to the same accuracy?

    STELE_DATA=DATA python perf_tests/upstream_trainings.py cifar-fast FOLDER
    STELE_DATA=DATA python perf_tests/upstream_trainings.py cifar-airbench FOLDER

FOLDER is a clone of github.com/davidcpage/cifar10-fast or github.com/KellerJordan/cifar10-airbench. The code in it is
executed; nothing of it is part of this project. Both sides train from each seed in turns, with the images at hand,
on a GPU or on the processor. Upstream's code keeps its own arithmetic and its compiler on a GPU; on the processor it
computes in float32, without the compiler. Each side compiles once; the first training of each, which compiles, does
not count. Prints a line for each training, then the mean accuracies and the ratio of the durations.
"""

import argparse
import contextlib
import functools
import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import NamedTuple

import numpy
import torch
from upstream import BATCH, airbench_text, module

from stele.measuring import measure
from stele.measuring.settings import DEVICES
from stele_worker import frameworks, recipes, tasks, time_to_accuracy
from stele_worker.subjects import TaskSubject

MODES = {"cifar-fast": "eager", "cifar-airbench": "max-autotune"}  # on a GPU; as the authors' code
TEST_BATCH = 2000  # images of a step of the evaluation, as in airbench
HOST = time_to_accuracy.Host(lambda **fields: None, None)


class Training(NamedTuple):
    """Seconds of each epoch, seconds of the last evaluation, and the accuracy after it."""

    epochs: list
    evaluation: float
    accuracy: float

    def seconds(self):
        return sum(self.epochs) + self.evaluation


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


def make_ours(arguments, paths):
    """Return train(seed) -> Training of the recipe."""
    support, on_gpu = frameworks.load("torch"), arguments.device == "cuda"
    mode = arguments.mode or (MODES[arguments.task] if on_gpu else "eager")
    settings = {
        "precision": "bf16" if on_gpu else "fp32",
        "deterministic": False,
        "autotune": True,
        "seed": 0,
    }
    support.configure(dict(settings, device=arguments.device, threads=arguments.threads, mode=mode))
    changes = {
        "dtype": "bfloat16" if on_gpu else "float32",
        "test_batch": TEST_BATCH,
        **sizes(arguments.images),
    }
    recipe = recipes.load(arguments.task, "torch")
    recipe = recipe if mode == "eager" else Compiled(recipe)

    samples = functools.cache(lambda part: TaskSubject(task(0), recipe).samples(part, paths))

    def task(seed):
        return tasks.make(arguments.task, "gpu", seed=seed, **changes)

    def train(seed):
        subject = TaskSubject(task(seed), recipe)
        subject.samples = lambda part, data: samples(part)  # read and converted once
        outcome = time_to_accuracy.train(support, subject, HOST, paths, None)
        return Training(list(outcome["seconds"]), outcome["evaluation_seconds"][-1], outcome["accuracy"])

    return train


def sizes(images):
    """Return changes of a Task that trains with fewer images; {} for all."""
    return {} if images is None else {"train": images, "test": test_images(images)}


def test_images(images):
    return images // 80 * 16  # upstream divides each batch into 16 ghost batches


def airbench(folder, arguments, paths):
    """Return train(seed) -> Training of airbench94_muon.py. Its clock also runs while it computes its filters."""
    exact, intervals = arguments.device == "cpu", []
    loaded = module("airbench", airbench_text(folder), exact=exact, changes=CUDA_ONLY)
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
        return Training(intervals[1:-1], intervals[-1], accuracy)

    return train


# what upstream requires of CUDA, for any device
CUDA_ONLY = (
    (r"torch\.cuda\.Event", "Event"),
    (r'torch\.device\("cuda"\)', "torch.device(DEVICE)"),
)


class Normalize:
    """torchvision's transform, which is all that upstream needs of torchvision."""

    def __init__(self, mean, deviation):
        self.mean, self.deviation = mean.view(3, 1, 1), deviation.view(3, 1, 1)

    def __call__(self, images):
        mean, deviation = (one.to(images.device, images.dtype) for one in (self.mean, self.deviation))
        return (images - mean) / deviation


class Event:
    """An event of CUDA, on any device: upstream measures with two. The time between them is kept in a list."""

    def __init__(self, intervals):
        self.intervals = intervals

    def record(self):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.when = perf_counter()

    def elapsed_time(self, other):
        self.intervals.append(other.when - self.when)
        return 1e3 * self.intervals[-1]


def fast(folder, arguments, paths):
    """Return train(seed) -> Training of new_dawn.py, the script of the article's last step."""
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
        return Training([one["train"]["time"] for one in kept], last["time"], float(last["acc"]))

    return train


def arrays_of(paths, images):
    """Return {"train" or "test": (images uint8 (n, 32, 32, 3), labels)}, those that the recipe takes, in its order."""
    counts = {"train": images, "test": None if images is None else test_images(images)}
    return {split: arrays_of_split(paths, split, count) for split, count in counts.items()}


def arrays_of_split(paths, split, count):
    x, y = (numpy.load(paths[f"{split}_{part}"]) for part in ("x", "y"))
    rows = tasks.subset(len(x) if count is None else count, len(x))
    return x[rows], y[rows]


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=BATCH)
    parser.add_argument("folder", type=Path, help="a clone of upstream's repository")
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=20, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="default: %(default)s")
    parser.add_argument("--mode", help=f"of the recipe; default: eager, and on a GPU {MODES}")
    parser.add_argument("--images", type=int, help="train with so many, to try the script; default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write each training to FILE")
    return parser.parse_args()


def main():
    arguments = parse()
    with tempfile.TemporaryDirectory() as arguments.scratch:
        paths = measure.inputs(arguments.task)[0]["data"]
        ours = make_ours(arguments, paths)
        make = {"cifar-fast": fast, "cifar-airbench": airbench}[arguments.task]
        theirs = make(arguments.folder, arguments, paths)
        measured = {"ours": [], "upstream": []}
        try:
            train_in_turns({"ours": ours, "upstream": theirs}, measured, arguments)
        finally:  # also if it is interrupted
            show(measured)


def train_in_turns(sides, measured, arguments):
    """Add a Training of each seed to each side, without the first training of each."""
    for seed in range(-1, arguments.seeds):
        for name, train in sorted(sides.items(), reverse=seed % 2 == 0):
            training = train(max(seed, 0))
            where = f"seed {seed + 1} of {arguments.seeds}" if seed >= 0 else "first, not counted"
            print(f"{name} {where}: {describe(training)}", flush=True)
            if seed >= 0:
                measured[name].append(training)
            if arguments.json:
                write(arguments.json, measured)


def write(path, measured):
    held = {name: [one._asdict() for one in trainings] for name, trainings in measured.items()}
    path.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")


def describe(training):
    epoch = numpy.median(training.epochs)
    return (
        f"{training.accuracy:.2%}, {training.seconds():.3f} s: epochs {epoch:.4f} s each, "
        f"evaluation {training.evaluation:.4f} s"
    )


def show(measured):
    """Print mean accuracies and ratios with 95 % intervals over the seeds that both sides have."""
    pairs = list(zip(measured["ours"], measured["upstream"], strict=False))
    for name, trainings in zip(measured, zip(*pairs, strict=True), strict=False):
        accuracies = numpy.array([one.accuracy for one in trainings])
        error = (
            1.96 * accuracies.std(ddof=1) / len(accuracies) ** 0.5 if len(accuracies) > 1 else float("nan")
        )
        print(f"{name}: mean accuracy {accuracies.mean():.2%} ± {error:.2%}, {len(accuracies)} seeds")
    for title, value in pairs and (
        ("all epochs and one evaluation", Training.seconds),
        ("the median epoch", lambda one: numpy.median(one.epochs)),
        ("the evaluation", lambda one: one.evaluation),
    ):
        ratios = numpy.array([value(one) / value(other) for one, other in pairs])
        draws = numpy.median(numpy.random.default_rng(0).choice(ratios, (2000, len(ratios))), axis=1)
        low, high = numpy.quantile(draws, (0.025, 0.975))
        print(f"{title}, ours / upstream: {numpy.median(ratios):.3f} [{low:.3f} {high:.3f}]")


if __name__ == "__main__":
    main()
