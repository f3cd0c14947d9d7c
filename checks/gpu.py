"""Everything that needs a GPU, in one command. Writes docs/gpu.md.

    python -m checks gpu [--framework NAME] [--device DEVICE] [--only STEP] [--upstream FOLDER] [--table]
    tox -e gpu

Builds the environments for CUDA, from local wheels in UV_FIND_LINKS if there is no network. Then it climbs the ladder
in each precision and in each mode, measures the suite and the modes, gates a release against itself, gates a slow-down
of 3 %, and measures the time to 94 % on CIFAR-10. With --upstream FOLDER, which has clones of cifar10-fast and
cifar10-airbench, it compares the recipes in PyTorch with the code of their authors.
The output of each step stays in .stele/gpu. An interrupted command continues with the first step that has not ended.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from stele import environments, files, schema
from stele.measuring import devices, machine
from stele.report import page
from stele_worker.protocol import TIME_TO_ACCURACY

PAGE = Path(__file__).parents[1] / "docs" / "gpu.md"
FOLDER = Path(".stele/gpu")
ROOT = Path(__file__).parents[1]
GATED = "torch"  # the framework of the two gates
BURN = 0.03  # the share by which the planted fault makes a step longer
TAIL = 60  # lines of the output that the page shows
SEEDS, TRICK_SEEDS = 20, 5  # of the time to accuracy, and of each training that shows a trick
UPSTREAM = {
    "cifar-fast": "cifar10-fast",
    "cifar-airbench": "cifar10-airbench",
}  # task -> name of the author's clone
COMPARED = {
    "cifar-fast": ("eager", "compile"),
    "cifar-airbench": ("max-autotune", "compile"),
}  # task -> modes whose trainings are compared with those of the author


class Step(NamedTuple):
    """A command, what it shows, and the exit code that it has to end with."""

    name: str
    shows: str
    command: tuple[str, ...]
    expected: int = 0
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.json"


def steps(device: str, names: Sequence[str], upstream: Path | None = None) -> list[Step]:
    """Return all steps in their order, for the environments ``names`` and the clones in the folder ``upstream``."""
    stele, where, listed = (sys.executable, "-m", "stele"), ("--device", device), ",".join(names)
    suite = (sys.executable, "-m", "pytest", "perf_tests", "--benchmark-only", *where, "--scale", "quick")
    gate = (*stele, "gate", GATED)
    judged = ("--task", "gru", "--phase", "train", "--metric", "step", "--budget", "10m", *where)
    precisions = ("fp32", "tf32", "bf16") if device == "cuda" else ("fp32", "bf16")
    modes = tuple(part for name in names for part in ("--framework", name))
    built = [name for name in names if environments.load(name).lock is not None]
    return [
        *([Step("build", "the environments are built", (*stele, "env", "make", *built))] if built else []),
        *(
            Step(f"ladder-{precision}-{name}", f"all rungs agree in {precision}",
                 (*stele, "parity", *where, "--precision", precision, "--framework", name))
            for precision in precisions for name in names
        ),
        *(
            Step(f"ladder-modes-{name}", "all rungs agree in each mode",
                 (*stele, "parity", *where, "--modes", "--framework", name))
            for name in names
        ),
        Step("suite", "steps and accuracy", (*suite, "--framework", listed, "--runs", str(FOLDER / "runs"))),
        Step("modes", "eager beside compiled",
             (sys.executable, "-m", "studies", "modes", *where, *modes)),
        Step("same", "a release passes beside itself",
             (*gate, GATED, "--task", "cnn", "--task", "gru", "--budget", "15m", *where)),
        Step("slower", f"a planted slow-down of {BURN:.0%} is reported", (*gate, "slower", *judged), 1,
             (("STELE_ENVIRONMENTS", str((FOLDER / "environments").absolute())),)),
        *time_to_accuracy(device, names),
        *((step for task in UPSTREAM for step in comparisons(upstream, device, task)) if upstream else ()),
    ]  # fmt: skip


def time_to_accuracy(device: str, names: Sequence[str]) -> Iterator[Step]:
    """Yield a step for each task with a target: ``SEEDS`` trainings in each framework that has it."""
    stele = (sys.executable, "-m", "stele")
    where, seeds = ("--device", "cuda", "--precision", "bf16"), SEEDS
    if device == "cpu":  # only to try the steps
        where, seeds = ("--device", "cpu", "--scale", "smoke"), 2
    precision = "bf16" if device == "cuda" else "fp32"
    for task in UPSTREAM:
        able = [
            name
            for name in names
            if not environments.load(name).why_absent(task, TIME_TO_ACCURACY, device=device, precision=precision)
        ]
        if able:
            measured = ("--framework", ",".join(able), *where, "--seeds", str(seeds))
            command = (*stele, "time-to-accuracy", "--task", task, *measured)
            yield Step(task, f"time to the target of {task}", command)
    if GATED in names and device == "cuda":
        command = (*stele, "tricks", "--framework", GATED, *where, "--seeds", str(TRICK_SEEDS))
        yield Step("tricks", "what each trick brings", command)


def comparisons(folder: Path, device: str, task: str) -> Iterator[Step]:
    """Yield the steps that compare a recipe in PyTorch with the code of its author: single steps, and trainings."""
    seeds, launched = ("--seeds", str(SEEDS)), ()
    if device == "cpu":  # only to try the steps
        seeds, launched = ("--seeds", "1", "--images", "2000"), ("--launches", "1", "--batch", "64")
    script = ("-m", "studies", "upstream")
    of_task = (task, str(folder / UPSTREAM[task]), "--device", device)
    yield Step(f"upstream-{task}", "equal losses, and no slower step",
               (sys.executable, *script, "steps", *of_task, *launched))  # fmt: skip
    for mode in COMPARED[task]:
        yield Step(f"upstream-trainings-{task}-{mode}", "accuracies, and the ratio of the trainings",
                   (sys.executable, *script, "trainings", *of_task, "--mode", mode, *seeds))  # fmt: skip


def write_slower() -> None:
    """Describe the environment whose steps take longer."""
    faulty = json.dumps([sys.executable, str(ROOT / "checks" / "study" / "faulty.py"), "burn"])
    files.write_text(
        FOLDER / "environments" / "slower.toml",
        f'label = "slower"\nframework = "{GATED}"\nimports = ["{GATED}"]\ncommand = {faulty}\n\n'
        f'[variables]\nSTELE_STUDY_BURN = "{BURN}"\n',
    )


def run(step: Step, device: str) -> dict[str, Any]:
    """Run a step, show its output, and return what the page needs of it."""
    print(f"=== {step.name}: {' '.join(step.command)}", flush=True)
    start, lines = time.monotonic(), list[str]()
    with subprocess.Popen(
        step.command, env={**os.environ, **dict(step.variables)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace",
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    seconds = round(time.monotonic() - start, 1)
    return {"command": list(step.command), "device": device, "code": process.returncode, "seconds": seconds,
            "output": lines, "date": str(date.today()), "machine": schema.to_json(machine.facts())}  # fmt: skip


def load(step: Step, device: str) -> dict[str, Any] | None:
    """Return the stored result of a step; None if it has not ended as expected, or was another command."""
    if not step.path.exists():
        return None
    result: dict[str, Any] = json.loads(step.path.read_text(encoding="utf-8"))
    same = result["command"] == list(step.command) and result["device"] == device
    return result if same and result["code"] == step.expected else None


def markdown(results: Sequence[tuple[Step, dict[str, Any] | None]]) -> str:
    """Return the page: a row for each step, the machine, and the ends of the outputs."""
    rows = [[step.name, step.shows, *outcome(step, result)] for step, result in results]
    parts = [page.table(("step", "what it shows", "result", "minutes"), rows)]
    if measured := [result for _, result in results if result]:
        facts = schema.convert(measured[0]["machine"], machine.Machine)
        gpus = ", ".join(gpu["name"] for gpu in facts.gpus) or "no GPU"
        parts.append(f"Measured {measured[0]['date']} on {gpus}; {facts.processor}, {facts.processors} processors.")
    for step, result in results:
        if result:
            tail = "\n".join(f"    {line}" for line in result["output"][-TAIL:])
            parts.append(f"**{step.name}**\n\n{tail}")
    return "\n\n".join(parts)


def outcome(step: Step, result: dict[str, Any] | None) -> list[str]:
    if result is None:
        return ["not run yet", ""]
    status = "yes" if result["code"] == step.expected else f"no: exit code {result['code']}"
    return [status, f"{result['seconds'] / 60:.1f}"]


def ready(device: str) -> list[str]:
    """Return the environments that support the device and are ready, or can be built.

    An environment with another one for the device, as jax-cuda beside jax, uses the processor alone.
    """
    found, names = [], environments.first_modes()
    for name in names:
        environment, has_another = environments.load(name), f"{name}-{device}" in names
        supported = not has_another and (environment.support.devices is None or device in environment.support.devices)
        if supported and (environments.state(environment).status == "ready" or environment.needs_gpu):
            found.append(name)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", action="append", metavar="NAME", help="default: all that support the device")
    parser.add_argument("--device", choices=devices.NAMES, default="cuda", help="default: %(default)s")
    parser.add_argument("--only", action="append", metavar="STEP", help="run only this step; default: all")
    parser.add_argument(
        "--upstream", type=Path, metavar="FOLDER", help="has the clones cifar10-fast and cifar10-airbench"
    )
    parser.add_argument("--table", action="store_true", help="run nothing; write the page from what is stored")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and devices.first() is None and not arguments.table:
        print("This machine has no NVIDIA device that may be used. See nvidia-smi and CUDA_VISIBLE_DEVICES, "
              "or try the steps with --device cpu.", file=sys.stderr)  # fmt: skip
        return 2
    write_slower()
    every = steps(arguments.device, arguments.framework or ready(arguments.device), arguments.upstream)
    results = []
    for step in every:
        result = load(step, arguments.device)
        if result is None and not arguments.table and step.name in (arguments.only or [step.name]):
            result = run(step, arguments.device)
            files.write_text(step.path, json.dumps(result, indent=1) + "\n")
        results.append((step, result))
        if arguments.device == "cuda":
            page.fill(PAGE, markdown(results + [(later, load(later, "cuda")) for later in every[len(results) :]]))
    failed = [step.name for step, result in results if result and result["code"] != step.expected]
    print(f"failed: {', '.join(failed)}" if failed else "Every step that ran ended as expected.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
