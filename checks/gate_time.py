"""Where does the time of a gate go?

    python -m checks gate_time [--gate NAME] [--budget 10m]
    python -m checks gate_time --table

Runs ``stele gate`` with its defaults for a CNN in JAX, a GRU in PyTorch and a model of Hugging Face, divides the time
by what was done, and writes the table of docs/gate.md. The records stay in .stele/gate_time, which --table reads.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil

from stele.gate import record as records
from stele.gate.metrics import KINDS
from stele.measuring import machine
from stele.measuring.run import Run
from stele.report import page

FOLDER = Path(".stele/gate_time")
PAGE, PART = Path(__file__).parents[1] / "docs" / "gate.md", "checks/gate_time"
GATES = {
    "cnn-jax": ("jax==0.10.1", "jax==0.10.1", "--task", "cnn"),
    "gru-torch": ("torch==2.13.0", "torch==2.13.0", "--task", "gru"),
    "hf-tiny-bert": (
        "transformers==5.22.0",
        "transformers==5.23.0",
        "--model",
        "hf-tiny:bert",
        "--with",
        "torch==2.13.0",
    ),
}
PARTS = (
    "preparation of the environments and the subject, and the report",
    "parity",
    "accuracy",
    "start of interpreters",
    "import",
    "data",
    "network and weights",
    "first step, which compiles",
    "warm-up",
    "counted steps",
    "other work of a launch",
    "waiting for the launches on other processors",
)
BEFORE, PARITY, ACCURACY, START, IMPORT, DATA, NETWORK, FIRST, WARMUP, COUNTED, OTHER, WAITING = PARTS


def run(name: str, budget: str | None) -> None:
    """Run a gate in a folder of its own, and store how long it took, and how much the processors were idle."""
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    command = ["stele", "gate", *GATES[name], "--json", "gate.json", *(["--budget", budget] if budget else [])]
    before, start = psutil.cpu_times(), perf_counter()
    subprocess.run(command, cwd=folder, check=False)
    seconds, after = perf_counter() - start, psutil.cpu_times()
    facts = {
        "when": date.today().isoformat(),
        "command": " ".join(word for word in command if word not in ("--json", "gate.json")),
        "seconds": seconds,
        "idle": (after.idle - before.idle) / seconds / (os.cpu_count() or 1),
        "stolen": (getattr(after, "steal", 0.0) - getattr(before, "steal", 0.0)) / seconds / (os.cpu_count() or 1),
    }
    (folder / "time.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")


def split(entries: list[dict[str, Any]], seconds: float) -> Counter[str]:
    """Return the seconds of each of PARTS. Launches at the same time count with their share of the time that passed."""
    parts: Counter[str] = Counter({BEFORE: seconds - sum(float(entry["took"]) for entry in entries)})
    measured = [entry for entry in entries if entry["key"][0] in KINDS]
    passes = Counter((entry["key"][1], entry["conditions"].seconds) for entry in measured)  # at the same time
    for entry in entries:
        kind, took = str(entry["key"][0]), float(entry["took"])
        if kind not in KINDS:  # parity of a model has several kinds of launches
            parts[kind if kind == ACCURACY else PARITY] += took
            continue
        lanes = passes[entry["key"][1], entry["conditions"].seconds]
        parts[WAITING] += took
        for run in (entry["runs"] or {}).values():
            for part, value in of_launch(run).items():
                parts[part] += value / lanes
                parts[WAITING] -= value / lanes
    return parts


def of_launch(run: Run) -> Counter[str]:
    """Return the seconds in which a launch was not waiting, by part."""
    assert run.lifetime is not None
    steps, first = run.steps.seconds, min(run.steps.warmup, 1)
    parts = Counter(
        {
            START: run.lifetime.start,
            # of the first Run of a launch
            IMPORT: (run.framework.start_seconds or run.framework.import_seconds) if run.lifetime.start else 0.0,
            DATA: run.preparation.data if run.preparation else 0.0,
            NETWORK: run.preparation.network if run.preparation else 0.0,
            FIRST: sum(steps[:first]),
            WARMUP: sum(steps[first : run.steps.warmup]),
            COUNTED: sum(run.counted_seconds),
        }
    )
    parts[OTHER] = run.lifetime.total - run.lifetime.waiting - sum(parts.values())
    return parts


def markdown() -> str:
    """Return the table of all gates that were run."""
    columns, notes = {}, []
    for name in GATES:
        folder = FOLDER / name
        if not (folder / "time.json").exists():
            continue
        facts = json.loads((folder / "time.json").read_text(encoding="utf-8"))
        path = max((folder / ".stele/gates").glob("*.jsonl"))  # its name begins with the time
        record = records.read(path)
        columns[name] = split(record.entries(), facts["seconds"]), facts
        notes.append(f"`{facts['command']}` ({facts['when']})")
    head = ("seconds", *columns)
    rows = [[part, *(cell(parts[part], facts["seconds"]) for parts, facts in columns.values())] for part in PARTS]
    rows.append(["in all", *(f"{facts['seconds']:.0f}" for _, facts in columns.values())])
    rows.append(["processors idle", *(f"{facts['idle']:.0%}" for _, facts in columns.values())])
    rows.append(["processors stolen", *(f"{facts['stolen']:.0%}" for _, facts in columns.values())])
    text = f"Measured on {machine.name_of(machine.facts())}, with the environments built: {', '.join(notes)}."
    return f"{page.table(head, rows)}\n\n{text}"


def cell(seconds: float, total: float) -> str:
    return f"{seconds:.0f} ({seconds / total:.0%})" if seconds >= 0.5 else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gate", action="append", choices=GATES, metavar="NAME", help=f"default: {', '.join(GATES)}")
    parser.add_argument("--budget", metavar="TIME", help="of each gate; default: that of stele gate")
    parser.add_argument("--table", action="store_true", help="measure nothing; write the table again")
    arguments = parser.parse_args()
    for name in () if arguments.table else arguments.gate or GATES:
        print(f"--- {name}", file=sys.stderr, flush=True)
        run(name, arguments.budget)
    page.fill(PAGE, markdown(), by=PART)


if __name__ == "__main__":
    main()
