"""What asv tracks of each release of a framework, in seconds, bytes and error: the less, the better.

asv builds the environment and keeps the numbers; stele measures in it, with the worker's own clock. These functions run
in environments that asv builds, so they need nothing but Python.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OPTIONS = "STELE_ASV"  # a variable: options of `stele releases measure`, such as "--task gru --launches 2"
HOST = ROOT / ".stele" / "host"  # the interpreter that has stele: `stele releases sync` writes it
PARAMS = (["cnn", "resnet50", "gru"], ["train", "infer"], ["tuned", "as-shipped"])
UNITS = {
    "step": "seconds",
    "first_step": "seconds",
    "import": "seconds",
    "host_memory": "bytes",
    "device_memory": "bytes",
    "error": "fraction",
}


def setup_cache():
    """All numbers of the release that asv has installed, by metric and cell."""
    if not HOST.exists():
        raise RuntimeError(f"{HOST} does not say which interpreter has stele. Type: stele releases sync")
    asked = ["-m", "stele", "releases", "measure", os.environ["ASV_COMMIT"], "--python", sys.executable]
    asked += shlex.split(os.environ.get(OPTIONS, ""))
    done = subprocess.run([HOST.read_text().strip(), *asked], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["numbers"]


setup_cache.timeout = 7200


def track(metric):
    """A function for asv, of the metric's numbers."""

    def tracked(found, task, phase, mode):
        return found.get(metric, {}).get(f"{task} {phase} {mode}", float("nan"))

    tracked.__name__ = tracked.pretty_name = f"track_{metric}"
    tracked.unit, tracked.version = (
        UNITS[metric],
        "1",
    )  # a hash of this file would cut every line when it is edited
    tracked.params, tracked.param_names = PARAMS, ["task", "phase", "mode"]
    return tracked


track_step = track("step")
track_first_step = track("first_step")
track_import = track("import")
track_host_memory = track("host_memory")
track_device_memory = track("device_memory")
track_error = track("error")
