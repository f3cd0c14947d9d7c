"""Are the recipes of cifar-fast and cifar-airbench as fast as their authors' code, and do they compute the same?

    python -m studies upstream steps TASK FOLDER [--launches N] [--write]
    STELE_DATA=DATA python -m studies upstream trainings TASK FOLDER [--seeds N]

FOLDER is a clone of the authors' repository. The code in it is executed; nothing of it is part of this project.

``steps``: each launch is a fresh process in which both sides take steps in turns, in float32, from equal weights with
equal images. Prints the largest relative difference of the first losses, and the ratio of the durations; ``--write``
writes docs/results/time-to-accuracy.md. Exit code 1: the losses differ, or the recipe is slower. What was measured
stays in .stele/upstream.jsonl; an interrupted command continues.

``trainings``: one process trains both sides from each seed in turns. On a GPU, the authors' code keeps its own
arithmetic and its compiler; on the processor it computes in float32 without the compiler. Prints a line for each
training, then the mean accuracies and the ratios of the durations.
"""

import argparse
import json
import os
import subprocess
import sys
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from stele import statistics
from stele.measuring import lock, machine, processors
from stele.measuring.settings import DEVICES, MALLOC, Settings
from stele.report import page
from studies import launches

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
PAGE, PART = ROOT / "docs" / "results" / "time-to-accuracy.md", "studies, upstream"
FILE, KEYS = Path(".stele/upstream.jsonl"), ("comparison", "steps")
AUTHORS = {  # task -> repository, a file of it
    "cifar-fast": ("davidcpage/cifar10-fast", "torch_backend.py"),
    "cifar-airbench": ("KellerJordan/cifar10-airbench", "airbench94_muon.py"),
}
BATCH = {"cifar-fast": 512, "cifar-airbench": 2000}  # of the tasks
MODES = {"cifar-fast": "eager", "cifar-airbench": "max-autotune"}  # on a GPU; as the authors' code
EQUAL = 1e-4  # losses that differ by less
TURNS = 10  # timed steps of each side in a launch


class Comparison(NamedTuple):
    task: str
    batch: int
    device: str
    threads: int
    malloc: str

    def __str__(self) -> str:
        return "/".join(map(str, self))


def launch(folder: Path, comparison: Comparison) -> dict[str, float]:
    """Return what a fresh process measures: see ``steps.compare``."""
    request = {**comparison._asdict(), "folder": str(folder), "turns": TURNS}
    printed = start("steps.py", request, stdout=subprocess.PIPE).stdout
    result: dict[str, float] = json.loads(printed.splitlines()[-1])
    return result


def start(script: str, request: dict[str, Any], stdout: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script of this folder with the variables of a worker. End with 1 if it fails."""
    settings = Settings(**{name: request[name] for name in ("device", "threads", "malloc")})
    variables = {**os.environ, **settings.variables()}
    command = [sys.executable, str(HERE / script), json.dumps(request)]
    process = subprocess.run(command, env=variables, stdout=stdout, text=True, check=False)
    if process.returncode:
        sys.exit(f"{script} failed for {request['task']}, exit code {process.returncode}. Its error is above.")
    return process


def row(comparison: Comparison, results: list[dict[str, float]]) -> list[str]:
    ratio = statistics.median([one["ratio"] for one in results])
    seconds = [f"{statistics.median([one[side] for one in results]).middle:.3f}" for side in ("recipe", "author")]
    return [
        comparison.task,
        f"{comparison.batch:,}",
        str(comparison.threads),
        comparison.malloc,
        f"{max(one['losses'] for one in results):.0e}",
        *seconds,
        launches.interval(ratio),
        str(len(results)),
        "yes" if is_slower(results) else "no",
    ]


def is_slower(results: list[dict[str, float]]) -> bool:
    low = statistics.median([one["ratio"] for one in results]).low
    return low is not None and low > 1


def differ(results: list[dict[str, float]]) -> bool:
    return max(one["losses"] for one in results) > EQUAL


def markdown(stored: dict[str, list[dict[str, float]]], device: str) -> str:
    """Return the table of a device."""
    header = (
        "task",
        "batch",
        "threads",
        "allocator",
        "losses differ by",
        "s of a step",
        "s of the authors' step",
        "recipe / authors' code",
        "launches",
        "slower",
    )
    rows = [row(one, results) for key, results in sorted(stored.items()) if (one := parsed(key)).device == device]
    facts = machine.facts()
    where = ", ".join(gpu["name"] for gpu in facts.gpus) if device == "cuda" else facts.processor
    return (
        f"{page.table(header, rows)}\n\nMeasured until {date.today()} on {where}, {facts.processors} processors. "
        f"[low middle high]: 95 % interval over launches, each with {TURNS} turns."
    )


def parsed(key: str) -> Comparison:
    task, batch, device, threads, malloc = key.split("/")
    return Comparison(task, int(batch), device, int(threads), malloc)


def compare_steps(arguments: argparse.Namespace) -> int:
    batch = arguments.batch or BATCH[arguments.task]
    comparison = Comparison(arguments.task, batch, arguments.device, arguments.threads, arguments.malloc)
    with lock.machine("tox -e studies -- upstream", wait=True, say=print):
        launches.measure(FILE, KEYS, [comparison], arguments.launches, partial(launch, arguments.folder))
    stored = launches.load(FILE, *KEYS)
    print(markdown(stored, comparison.device))
    if arguments.write:
        page.fill(PAGE, markdown(stored, "cpu"), by=PART)
    results = stored[str(comparison)]
    return int(differ(results) or is_slower(results))


def compare_trainings(arguments: argparse.Namespace) -> int:
    on_gpu = arguments.device == "cuda"
    request = {key: value for key, value in vars(arguments).items() if key not in ("what", "run", "folder")}
    request["folder"] = str(arguments.folder)
    request["mode"] = arguments.mode or (MODES[arguments.task] if on_gpu else "eager")
    request["dtype"] = arguments.dtype or ("bfloat16" if on_gpu else "float32")
    with lock.machine("tox -e studies -- upstream", wait=True, say=print):
        start("trainings.py", request)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = parser.add_subparsers(dest="what", required=True)
    steps, trainings = every.add_parser("steps"), every.add_parser("trainings")
    for command, run in ((steps, compare_steps), (trainings, compare_trainings)):
        command.set_defaults(run=run)
        command.add_argument("task", choices=AUTHORS)
        command.add_argument("folder", type=Path, help="a clone of the authors' repository")
        command.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
        command.add_argument("--threads", type=int, default=processors.count(), help="default: %(default)s")
        command.add_argument(
            "--malloc",
            choices=MALLOC,
            default="steady",
            help="profile of the C library's allocator; default: %(default)s",
        )
    steps.add_argument("--batch", type=int, help=f"images of a step; default: {BATCH}")
    steps.add_argument("--launches", type=int, default=6, metavar="N", help="default: %(default)s")
    steps.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    trainings.add_argument("--seeds", type=int, default=20, help="default: %(default)s")
    trainings.add_argument("--mode", help=f"of the recipe; default: eager, and on a GPU {MODES}")
    trainings.add_argument(
        "--dtype",
        choices=("float32", "bfloat16", "float16"),
        help="of the recipe; float16 is to compare durations, because the recipe does not scale its loss; "
        "default: float32, and on a GPU bfloat16",
    )
    trainings.add_argument(
        "--images", type=int, help="train with so many, at least a batch, to try the command; default: all"
    )
    trainings.add_argument("--json", metavar="FILE", help="write each training to FILE")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    repository, file = AUTHORS[arguments.task]
    if not (arguments.folder / file).is_file():
        print(
            f"{arguments.folder} has no {file}. Clone github.com/{repository}, and give its folder.",
            file=sys.stderr,
        )
        return 2
    code: int = arguments.run(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
