"""Environments whose PyTorch has a planted change, for scripts that must find it."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

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
