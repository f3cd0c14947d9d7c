"""The asv benchmarks of each release of a framework, in seconds, bytes and error: less is better.

asv builds the environment and stores the numbers. stele measures in that environment, with the worker's clock. These
functions run in environments that asv builds, so they use only the standard library.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

# the folder of asv.conf.json, which is the root of the user's project
ROOT = Path(os.environ.get("ASV_CONF_DIR", "."))
# an environment variable with options for `stele releases measure`, such as "--task gru --launches 2"
OPTIONS = "STELE_ASV"
# contains the path of the interpreter that has stele; `stele releases sync` writes it
HOST = ROOT / ".stele" / "host"
# models of the user, and more modes, a name on each line; `stele releases run` with --model or --mode writes them
MODELS, MODES = ROOT / ".stele" / "models", ROOT / ".stele" / "modes"
TASKS = [
    "cnn",
    "resnet50",
    "gru",
    "mobilenetv2",
    "transformer",
    "encoder",
    "decoder",
    "generation",
    "chain",
    "stack",
    "densenet121",
    "cifar-fast",
    "cifar-airbench",
]
TASKS += MODELS.read_text().split() if MODELS.exists() else []
PARAMS = (
    TASKS,
    ["train", "infer"],
    ["tuned", "as-shipped"] + (MODES.read_text().split() if MODES.exists() else []),
)
UNITS = {
    "step": "seconds",
    "first_step": "seconds",
    "import": "seconds",
    "host_memory": "bytes",
    "device_memory": "bytes",
    "error": "fraction",
}


def setup_cache():
    """Return all numbers of the release that asv has installed, by metric and cell."""
    if not HOST.exists():
        raise RuntimeError(
            f"{HOST} is missing. It names the interpreter that has stele. Create it with: stele releases sync"
        )
    command = ["-m", "stele", "releases", "measure", os.environ["ASV_COMMIT"], "--python", sys.executable]
    command += shlex.split(os.environ.get(OPTIONS, ""))
    done = subprocess.run([HOST.read_text().strip(), *command], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["numbers"]


setup_cache.timeout = 7200


def track(metric):
    """Return the asv benchmark of a metric."""

    def benchmark(numbers, task, phase, mode):
        return numbers.get(metric, {}).get(f"{task} {phase} {mode}", float("nan"))

    benchmark.__name__ = benchmark.pretty_name = f"track_{metric}"
    benchmark.unit = UNITS[metric]
    benchmark.version = "1"  # asv's default is a hash of the source, so that every edit would start new lines
    benchmark.params, benchmark.param_names = PARAMS, ["task", "phase", "mode"]
    return benchmark


track_step = track("step")
track_first_step = track("first_step")
track_import = track("import")
track_host_memory = track("host_memory")
track_device_memory = track("device_memory")
track_error = track("error")
