"""The command line of the plugin, without any import of stele: ``session`` gives the values their meaning.

Every option starts with ``--stele-``, because names such as ``--device`` and ``--seed`` may belong to other plugins.
"""

from typing import Any, NamedTuple

import pytest

PREFIX = "stele"


class Option(NamedTuple):
    """An option of the command line: its name without the prefix, its help text, and argparse's keywords."""

    name: str
    help: str
    keywords: dict[str, Any]

    @property
    def dest(self) -> str:
        return f"{PREFIX}_{self.name.replace('-', '_')}"

    @property
    def flag(self) -> str:
        """The option as users of the plugin type it, ``--stele-device``."""
        return f"--{PREFIX}-{self.name}"

    @property
    def short(self) -> str:
        """The option as it is typed in Stele's own repository, ``--device``."""
        return f"--{self.name}"


def valued(name: str, metavar: str, help: str, **keywords: Any) -> Option:
    return Option(name, help, {"metavar": metavar, **keywords})


def flag(name: str, help: str) -> Option:
    return Option(name, help, {"action": "store_true"})


MODEL = (
    valued(
        "model",
        "SPEC",
        "measure a model: package.module:attribute, path/file.py:attribute, torchvision:NAME, …",
    ),
    valued("input", "INPUT[,INPUT...]", "the inputs of --stele-model, such as 8x3x64x64 or ids=int:4x128:30522"),
    valued("optimizer", "MODULE:CLASS", "the optimizer of --stele-model; default: SGD"),
    valued("pretrained", "FILE", "a safetensors file with the weights of --stele-model; default: seeded weights"),
)
HOW = (
    flag("suite", "run the built-in performance tests"),
    valued(
        "framework",
        "ID[,ID...]",
        "torch, jax, … (stele env list) or a pin such as jax==0.9.2",
        action="append",
    ),
    flag("modes", "also each other mode of these frameworks, such as torch-compile"),
    valued("task", "ID[,ID...]", "tasks such as cnn,gru; default: all", action="append"),
    valued(
        "scale",
        "SCALE",
        "smoke, quick, paper, or another scale of the tasks, such as batch-128; default: quick, on a GPU paper",
    ),
    valued("device", "DEVICE", "cpu or cuda; default: cuda where there is one"),
    valued("precision", "PRECISION", "fp32, tf32, bf16 or default; default: fp32, for models of users: default"),
    valued("threads", "N", "processors that a framework may use; default: all", type=int),
    valued("devices", "N", "train on N devices, each with its threads; default: 1", type=int),
    valued("scaling", "KIND", "weak: each device gets a whole batch; strong: the devices divide one; default: weak"),
    valued(
        "malloc",
        "PROFILE",
        "plain: the C library's allocator as it is; mmap: it returns freed memory at once; steady: it keeps it; "
        "default: plain",
    ),
    flag("deterministic", "deterministic kernels, no autotuning"),
    valued("seed", "N", "seed of weights, batch order and dropout; default: 0", type=int),
    valued(
        "worker-timeout",
        "SECONDS",
        "stop a worker that sends nothing for SECONDS; default: 600",
        type=float,
    ),
    valued("launches", "N", "fresh processes for each test; default: 1", type=int),
    valued("runs", "FOLDER", "folder for the measured Runs; default: .stele/runs"),
    flag("no-wait", "fail if another measurement runs on this machine, instead of waiting for it"),
)
BASELINES = (
    flag(
        "save-baseline",
        "save the launches as a candidate baseline: stele baseline promote makes it the baseline",
    ),
    flag("against-baseline", "fail a test that is slower than its baseline"),
    valued("baselines", "FOLDER", "folder of the baselines; default: baselines"),
)
OPTIONS = (*MODEL, *HOW, *BASELINES)


def add(parser: pytest.Parser) -> None:
    group = parser.getgroup(PREFIX, "stele: performance and parity of deep-learning models")
    for option in OPTIONS:
        group.addoption(option.flag, dest=option.dest, help=option.help, **option.keywords)


def used(config: pytest.Config) -> bool:
    """Return whether any option of the plugin was given."""
    return any(getattr(config.option, option.dest, None) for option in OPTIONS)
