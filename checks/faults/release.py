"""Faults of a release: does ``stele gate --model --metric parity`` detect them, and name the layer or the parameter?

OLD and NEW are two equal environments with PyTorch and transformers. A fault is planted into the installed files of
NEW, and removed afterwards: then the gate must pass.
"""

import contextlib
import os
import re
import subprocess
import sys

from uv import find_uv_bin

REQUIREMENTS = ("torch==2.13.0", "transformers==5.23.0", "numpy")
BERT, CNN = "hf-tiny:bert", "cnn.py:Cnn"
SOURCE = """
from torch import nn


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.square = nn.Linear(16, 16)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.norm(self.conv(x.to(self.conv.weight.dtype))).relu()
        return self.head(self.drop(self.square(x.mean((2, 3))).relu()))
"""


def activation(project):
    """GELU is replaced by its approximation with tanh."""
    check(
        project,
        BERT,
        "transformers/activations.py",
        "self.act = nn.functional.gelu\n",
        'self.act = lambda input: nn.functional.gelu(input, approximate="tanh")\n',
        r"layers differ \(rung 2\): output of bert\.encoder\.layer\.0\.intermediate\.intermediate_act_fn: ",
    )


def epsilon(project):
    """The epsilon of batch normalisation is 100 times larger."""
    check(
        project,
        CNN,
        "torch/nn/modules/batchnorm.py",
        "eps: float = 1e-5",
        "eps: float = 1e-3",
        r"layers differ \(rung 2\): output of norm: ",
    )


def transposed_weight(project):
    """The weight of a square dense layer is transposed."""
    check(
        project,
        CNN,
        "torch/nn/modules/linear.py",
        "F.linear(input, self.weight, self.bias)",
        "F.linear(input, self.weight.T if self.in_features == self.out_features else self.weight, self.bias)",
        r"layers differ \(rung 2\): output of square: ",
    )


def dropout(project):
    """Dropout is active in inference."""
    check(
        project,
        CNN,
        "torch/nn/modules/dropout.py",
        "F.dropout(input, self.p, self.training, self.inplace)",
        "F.dropout(input, self.p, True, self.inplace)",
        r"inference differs \(rung 8\): two calls on one batch differ",
    )


def default_dtype(project):
    """The default data type is bfloat16."""
    check(
        project,
        CNN,
        "torch/__init__.py",
        "\n_logging._init_logs()\n",
        "\n_logging._init_logs()\nset_default_dtype(bfloat16)\n",
        r"bfloat16 in NEW, float32 in OLD \(conv\.weight",
    )


def check(project, model, file, old, new, names):
    """Replace ``old`` by ``new`` in an installed file. The gate must find it, with a message that matches ``names``."""
    (project.work / CNN.partition(":")[0]).write_text(SOURCE)
    folder = environments(project.folder.parent / "release")
    (site,) = (folder / "NEW").glob("lib/python*/site-packages")
    interpreters = [str(folder / arm / "bin" / "python") for arm in ("OLD", "NEW")]
    command = ("gate", *interpreters, "--model", model, "--metric", "parity", "--no-wait")
    with planted(site / file, old, new):
        result = project.observe(project.run(*command), 1)
    project.require(re.search(rf"^ +BROKEN .*{names}", result.output, re.M), f"no message matches {names!r}")
    project.proceed(project.run(*command), 0)


def environments(folder):
    """Return a folder with two equal environments, OLD and NEW, which are made once."""
    if not folder.exists():
        make_environment(folder / "OLD")
        # the files of NEW must be copies: links would lead into uv's cache
        make_environment(folder / "NEW", "--link-mode", "copy")
    return folder


def make_environment(folder, *options):
    """Make a virtual environment with the requirements."""
    variables = dict(os.environ)
    if "PIP_FIND_LINKS" in variables:  # such as a folder with a build of PyTorch for CPUs
        variables.setdefault("UV_FIND_LINKS", variables["PIP_FIND_LINKS"])
    for command in (
        ["venv", "--python", sys.executable, folder],
        ["pip", "install", "--python", folder / "bin" / "python", *options, *REQUIREMENTS],
    ):
        subprocess.run([find_uv_bin(), "--quiet", *command], env=variables, check=True)


@contextlib.contextmanager
def planted(file, old, new):
    """Change an installed file, and restore it."""
    content = file.read_text(encoding="utf-8")
    if old not in content:
        raise ValueError(f"{file.name} no longer contains {old!r}: adapt the fault")
    file.write_text(content.replace(old, new), encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(content, encoding="utf-8")


FAULTS = (activation, epsilon, transposed_weight, dropout, default_dtype)
