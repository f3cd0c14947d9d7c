"""Environments whose PyTorch has a planted change, and commands that must find it, for scripts that write a page."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from stele.measuring import machine

WORKER = Path(__file__).with_name("planted_torch.py")


@contextmanager
def planted(*changes: str) -> Iterator[dict[str, str]]:
    """Give the variables of processes in which ``torch-<change>`` is an environment, for each change."""
    with TemporaryDirectory(prefix="stele-planted-") as folder:
        for change in changes:
            command = json.dumps([sys.executable, str(WORKER), change])
            text = f'label = "PyTorch with a planted {change}"\nframework = "torch"\ncommand = {command}\n'
            Path(folder, f"torch-{change}.toml").write_text(text, encoding="utf-8")
        yield {**os.environ, "STELE_ENVIRONMENTS": folder}


def run_stele(arguments: str, variables: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Run a command of Stele and show what it prints. Return that, and the content of its file of ``--json``.

    Without the file, this process ends with the exit code of the command.
    """
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "stele", *arguments.split(), "--json", str(report)]
        done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, encoding="utf-8", check=False)
        print(done.stdout, flush=True)
        if not report.exists():
            sys.exit(done.returncode)
        return done.stdout.strip(), json.loads(report.read_text(encoding="utf-8"))


def quoted(arguments: str, output: str) -> str:
    """Return a command and what it printed as a block of a page."""
    return f"```\n$ stele {arguments}\n{output}\n```"


def provenance() -> str:
    facts = machine.facts()
    return f"Measured {date.today()} on {facts.processor}, {facts.processors} processors, one thread."
