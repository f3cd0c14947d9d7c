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
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=f"default: {', '.join(names)}")
    chosen = parser.parse_args().faults or names
    unknown = [name for name in chosen if name not in names]
    if unknown:
        parser.error(f"unknown fault {unknown[0]!r}. The faults are {', '.join(names)}.")
    faults = [fault for fault in FAULTS if fault.name in chosen]
    with tempfile.TemporaryDirectory(prefix="stele-") as folder:
        failures = check_faults(Path(folder), faults)
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


def check_faults(folder, faults):
    """Print a line for each gate. Return what went wrong."""
    (folder / CNN.partition(":")[0]).write_text(SOURCE)
    make_environment(folder / "OLD")
    # the files of NEW must be copies: links would lead into uv's cache
    site = make_environment(folder / "NEW", "--link-mode", "copy")
    failures = []
    for model in dict.fromkeys(fault.model for fault in faults):
        if run_gate(folder, f"no fault ({model})", model)[:2] != (0, "PASS"):
            failures.append(f"{model} does not pass without a fault.")
    for fault in faults:
        with planted(fault, site):
            code, status, message = run_gate(folder, fault.name, fault.model)
        if (code, status) != (1, "BROKEN"):
            failures.append(f"{fault.name}: not detected.")
        elif not re.search(fault.names, message):
            failures.append(f"{fault.name}: detected, but the message does not match {fault.names!r}.")
    return failures


def make_environment(folder, *options):
    """Make a virtual environment with the requirements. Return its site-packages."""
    python = folder / "bin" / "python"
    variables = dict(os.environ)
    if "PIP_FIND_LINKS" in variables:  # such as a folder with a build of PyTorch for CPUs
        variables.setdefault("UV_FIND_LINKS", variables["PIP_FIND_LINKS"])
    for command in (
        ["venv", "--python", sys.executable, folder],
        ["pip", "install", "--python", python, *options, *REQUIREMENTS],
    ):
        subprocess.run([find_uv_bin(), "--quiet", *command], env=variables, check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    return site


@contextlib.contextmanager
def planted(fault, site):
    """Change an installed file, and restore it."""
    file = site / fault.file
    content = file.read_text(encoding="utf-8")
    if fault.old not in content:
        raise SystemExit(f"{fault.name}: {fault.file} no longer contains {fault.old!r}. Adapt the fault.")
    file.write_text(content.replace(fault.old, fault.new), encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(content, encoding="utf-8")


def run_gate(folder, name, model):
    """Print a line for the gate. Return its exit code, and the status and the message of the verdict on parity."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "stele", "gate", "OLD/bin/python", "NEW/bin/python", "--model", model]
    process = subprocess.run(
        [*command, "--metric", "parity", "--no-wait", "--json", report.name],
        cwd=folder,
        env={**os.environ, "STELE_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
    )
    if not report.exists():
        raise SystemExit(f"{name}: the gate wrote no report.\n{process.stdout}{process.stderr}")
    (verdict,) = json.loads(report.read_text())["verdicts"]
    print(f"{name:26} {verdict['status']:12} {verdict['message']}", flush=True)
    return process.returncode, verdict["status"], verdict["message"]


if __name__ == "__main__":
    main()
