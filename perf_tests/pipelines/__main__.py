"""How much of a loader's work runs at the same time as the training step?

    python perf_tests/pipelines [--framework NAME] [--launches N] [--samples N]      or: tox -e pipelines

Measures CIFAR-10 with augmentation through the loader of each framework: the loader alone, the training step of the CNN
alone, and both, in fresh processes that take turns. Writes docs/pipelines.md. What was measured stays in
.stele/pipelines.jsonl.
"""

import argparse
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from fixtures.ready import environments_with
from stele import files
from stele.environments import Environment, builds
from stele.errors import SteleError
from stele.measuring import lock, machine, measure, processors
from stele.measuring.settings import Settings
from stele.report import page

PAGE, WORKER = Path(__file__).parents[2] / "docs/pipelines.md", Path(__file__).with_name("worker.py")
LOG = Path(".stele/pipelines.jsonl")
LOADERS = {
    "torch": "torch.utils.data.DataLoader",
    "jax": "Grain",
    "tensorflow": "tf.data",
    "paddle": "paddle.io.DataLoader",
    "mxnet-gluon": "gluon.data.DataLoader",
}
HEAD = ("framework", "loader", "loader alone, ms", "step alone, ms", "both, ms", "overlap")

Seconds = dict[str, float]  # of a batch: loader, step and both


def launch(environment: Environment, settings: Settings, samples: int) -> Seconds:
    """Return what one process measures, after it is on disk. Raises SteleError, with its last line, if it fails."""
    fields, _ = measure.inputs("cnn")
    if fields["data"] is None:
        raise SteleError("CIFAR-10 is not at hand. Set STELE_DATA to a folder that has it.")
    request = {
        "settings": {**settings.as_request(), "mode": environment.mode},
        "images": fields["data"]["train_x"],
        "labels": fields["data"]["train_y"],
        "samples": samples,
        "workers": processors.count(),
    }
    command = [builds.command(environment)[0], str(WORKER), environment.framework, json.dumps(request)]
    variables = {**builds.variables(environment), **settings.variables()}
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise SteleError(f"{environment.name}: {done.stderr.strip().splitlines()[-1]}")
    seconds: Seconds = json.loads(done.stdout.splitlines()[-1])
    files.append_text(LOG, json.dumps({"environment": environment.name, **seconds}) + "\n")
    return seconds


def overlap(seconds: Seconds) -> float:
    """Return the share of the shorter part that runs at the same time as the longer one: 0 none, 1 all."""
    return (seconds["loader"] + seconds["step"] - seconds["both"]) / min(seconds["loader"], seconds["step"])


def row(environment: Environment, launches: list[Seconds]) -> list[str]:
    times = [f"{1e3 * median(one[part] for one in launches):.1f}" for part in ("loader", "step", "both")]
    shares = sorted(map(overlap, launches))
    return [
        environment.name,
        LOADERS[environment.name],
        *times,
        f"{median(shares):.2f} [{shares[0]:.2f} {shares[-1]:.2f}]",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--framework", action="append", choices=LOADERS, help="default: all that are ready")
    parser.add_argument("--launches", type=int, default=3, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--samples", type=int, default=12800, metavar="N", help="images; default: %(default)s"
    )
    arguments = parser.parse_args()
    settings = Settings(device="cpu", threads=1, malloc="steady")
    selected = environments_with("cnn", "train", settings, arguments.framework or list(LOADERS))
    measured: dict[str, Any] = {environment.name: [] for environment in selected}
    with lock.machine("tox -e pipelines", wait=True, say=print):
        for number in range(arguments.launches):
            for environment in selected:
                measured[environment.name].append(launch(environment, settings, arguments.samples))
                print(number + 1, environment.name, measured[environment.name][-1], flush=True)
    rows = [row(environment, measured[environment.name]) for environment in selected]
    facts = machine.facts()
    where = (
        f"Measured {date.today()} on {facts['processor']}, {facts['processors']} processors. One thread for the step, "
        f"{processors.count()} workers for the loader, {arguments.samples} images of CIFAR-10."
    )
    page.fill(PAGE, page.table(HEAD, rows, right=slice(2, None)) + f"\n\n{where}")


if __name__ == "__main__":
    main()
