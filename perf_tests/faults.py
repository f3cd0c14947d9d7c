"""Does ``stele gate --model --metric parity`` detect faults in a library, and name the layer or the parameter?

    python perf_tests/faults.py [FAULT ...]      or: tox -e faults

Makes two equal environments with PyTorch and transformers, OLD and NEW, and checks that they pass. Then it plants one
fault after the other into the installed files of NEW. Prints a table: the fault, the status and the message of the
gate. Exit: 0 if every fault was detected and named; 1 if not, or if the equal environments do not pass.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

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


class Fault(NamedTuple):
    """``old`` is replaced by ``new`` in ``file`` of site-packages; the message must match ``names``."""

    name: str
    model: str
    file: str
    old: str
    new: str
    names: str


FAULTS = (
    Fault(
        "activation",
        BERT,
        "transformers/activations.py",
        "self.act = nn.functional.gelu\n",
        'self.act = lambda input: nn.functional.gelu(input, approximate="tanh")\n',
        r"layers differ \(rung 2\): output of bert\.encoder\.layer\.0\.intermediate\.intermediate_act_fn: ",
    ),
    Fault(
        "epsilon",
        CNN,
        "torch/nn/modules/batchnorm.py",
        "eps: float = 1e-5",
        "eps: float = 1e-3",
        r"layers differ \(rung 2\): output of norm: ",
    ),
    Fault(
        "transposed weight",
        CNN,
        "torch/nn/modules/linear.py",
        "F.linear(input, self.weight, self.bias)",
        "F.linear(input, self.weight.T if self.in_features == self.out_features else self.weight, self.bias)",
        r"layers differ \(rung 2\): output of square: ",
    ),
    Fault(
        "dropout",
        CNN,
        "torch/nn/modules/dropout.py",
        "F.dropout(input, self.p, self.training, self.inplace)",
        "F.dropout(input, self.p, True, self.inplace)",
        r"inference differs \(rung 8\): two calls on one batch differ",
    ),
    Fault(
        "default dtype",
        CNN,
        "torch/__init__.py",
        "\n_logging._init_logs()\n",
        "\n_logging._init_logs()\nset_default_dtype(bfloat16)\n",
        r"weights differ \(rung 1\): conv\.weight: .*bfloat16",
    ),
)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [fault.name for fault in FAULTS]
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=f"default: all of {', '.join(names)}")
    chosen = parser.parse_args().faults or names
    unknown = [name for name in chosen if name not in names]
    if unknown:
        parser.error(f"unknown fault {unknown[0]!r}; the faults are {', '.join(names)}")
    with tempfile.TemporaryDirectory() as folder:
        results = check_faults(Path(folder), [fault for fault in FAULTS if fault.name in chosen])
        for row in results:
            print("  ".join(row), flush=True)
    sys.exit(1 if any(row[1] != "ok" for row in results) else 0)
