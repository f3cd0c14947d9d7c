"""Gates of neighbouring releases in which nothing changed: does one of them say REGRESSED or BROKEN?

    python -m checks unchanged [--gate ID] [--budget 5m]
    python -m checks unchanged --table

Runs ``stele gate`` of each pair of releases with the defaults of the command, and writes docs/results/unchanged.md.
The reports stay in .stele/unchanged; an interrupted command continues from there.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from stele import schema
from stele.measuring import machine
from stele.report import page
from stele.text import period

PAGE = Path(__file__).parents[1] / "docs" / "results" / "unchanged.md"
FOLDER = Path(".stele/unchanged")
MODELS = Path(__file__).parents[1] / "tests" / "frameworks" / "project"
HEAD = ("gate", "model", "status", "launches", "minutes", "what did not pass")


class Gate(NamedTuple):
    """A pair of releases and a model. ``options`` follow ``--model``."""

    old: str
    new: str
    model: str
    options: tuple[str, ...] = ()
    backend: str | None = None  # of Keras
    change: str | None = None  # what is different in NEW, if that is known

    @property
    def name(self) -> str:
        backend = f"-{self.backend}" if self.backend else ""
        return f"{self.old.split()[0]}-{self.model}{backend}".replace("/", "_").replace(":", "_")

    def command(self, budget: str | None) -> list[str]:
        model = self.model if self.model.startswith("hf") else os.path.relpath(MODELS / self.model, FOLDER)
        limit = ["--budget", budget] if budget else []
        report = ["--json", f"{self.name}.json"]
        return ["stele", "gate", self.old, self.new, "--model", model, *self.options, *report, *limit]


def gates(
    old: str,
    new: str,
    models: str,
    options: tuple[str, ...] = (),
    backend: str | None = None,
    change: str | None = None,
) -> list[Gate]:
    """Return a gate for each of ``models``: ``FILE:NAME NAME``, or ``hf-tiny:NAME NAME``."""
    source, _, names = models.partition(":")
    return [Gate(old, new, f"{source}:{name}", options, backend, change) for name in names.split()]


TORCH, SETUPTOOLS = ("--with", "torch==2.13.0"), ("--with", "setuptools")
UNCHANGED = [
    *gates("transformers==5.22.0", "transformers==5.23.0", "hf-tiny:bert gpt2 t5 vit whisper", TORCH),
    *gates("transformers==5.22.1", "transformers==5.22.2", "hf-tiny:llama mixtral qwen3", TORCH),
    *gates("flax==0.12.7 jax==0.10.2", "flax==0.12.8 jax==0.10.2", "jax_models.py:Image TwoInputs Attention"),
    *gates("keras==3.15.0", "keras==3.15.1", "keras_models.py:image recurrent", (), "tensorflow"),
    *gates("keras==3.15.0", "keras==3.15.1", "keras_models.py:image recurrent", (), "jax"),
    *gates("keras==3.15.0", "keras==3.15.1", "keras_models.py:image recurrent", TORCH, "torch"),
    *gates("tensorflow-cpu==2.15.0", "tensorflow-cpu==2.15.0.post1", "tf_keras_models.py:image recurrent"),
    *gates("paddlepaddle==3.2.1", "paddlepaddle==3.2.2", "paddle_models.py:image Attention", SETUPTOOLS),
]
# of the first selection: their gates said REGRESSED
REPLACED = [
    *gates(
        "transformers==5.22.0",
        "transformers==5.23.0",
        "hf-tiny:llama mixtral qwen3",
        TORCH,
        change="each layer with grouped queries calls `reshape` once more and reads an environment variable. A loop "
        "without Stele takes 1.6 % longer for llama (standard error 0.7 %) and 1.4 % for qwen3 (0.9 %)",
    ),
    *gates(
        "tensorflow-cpu==2.15.0.post1",
        "tensorflow-cpu==2.15.1",
        "tf_keras_models.py:image recurrent",
        change="the import needs 460 MiB without Stele, and 453 MiB in the release before",
    ),
    *gates(
        "paddlepaddle==3.3.0",
        "paddlepaddle==3.3.1",
        "paddle_models.py:image Attention",
        SETUPTOOLS,
        change="a call of Attention takes 25 to 43 % longer in a loop without Stele (four pairs of processes). The "
        "import needs 17 MiB more",
    ),
]
GATES = {gate.name: gate for gate in (*UNCHANGED, *REPLACED)}


def run(gate: Gate, budget: str | None) -> None:
    """Run a gate unless its report exists."""
    if (FOLDER / f"{gate.name}.json").exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    variables = {**os.environ, **({"KERAS_BACKEND": gate.backend} if gate.backend else {})}
    subprocess.run(gate.command(budget), cwd=FOLDER, env=variables, check=False)
    if not (FOLDER / f"{gate.name}.json").exists():
        raise SystemExit(f"{gate.name} ended without a report.")


def reports() -> Iterator[tuple[Gate, dict[str, Any]]]:
    for gate in GATES.values():
        path = FOLDER / f"{gate.name}.json"
        if path.exists():
            yield gate, schema.unwrap(json.loads(path.read_text(encoding="utf-8")))


def row(gate: Gate, report: dict[str, Any]) -> list[str]:
    opened = [one for one in report["verdicts"] if one["status"] not in ("PASS", "IMPROVED")]
    what = "; ".join(f"{one['phase']} {one['metric']}: {one['message']}" for one in opened)
    backend = f", Keras on {gate.backend}" if gate.backend else ""
    minutes = f"{report['seconds'] / 60:.1f}"
    gated = f"{gate.old} → {gate.new}{backend}"
    return [gated, gate.model, report["status"], str(report["launches"]), minutes, what]


def markdown(measured: Sequence[tuple[Gate, dict[str, Any]]]) -> str:
    """Return what was measured, as Markdown: the unchanged releases, and those that they have replaced."""
    unchanged = [(gate, report) for gate, report in measured if gate in UNCHANGED]
    replaced = [(gate, report) for gate, report in measured if gate in REPLACED]
    counts = Counter(report["status"] for _, report in unchanged)
    summary = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    places = sorted({machine.name_of(schema.convert(report["machine"], machine.Machine)) for _, report in measured})
    written = ((FOLDER / f"{gate.name}.json").stat().st_mtime for gate, _ in measured)
    days = sorted(f"{datetime.fromtimestamp(when):%Y-%m-%d}" for when in written)
    parts = [f"{len(unchanged)} of {len(UNCHANGED)} gates: {summary or 'not measured yet'}."]
    if unchanged:
        parts.append(f"Median {median(report['seconds'] for _, report in unchanged) / 60:.1f} minutes.")
    if measured:
        parts.append(f"Measured on {'; '.join(places)}, {period(days)}.")
    tables = [" ".join(parts), page.table(HEAD, [row(*one) for one in unchanged])]
    if replaced:
        reasons = dict.fromkeys(f"In {gate.new}, {gate.change}." for gate, _ in replaced)
        tables += [" ".join(["Replaced pairs.", *reasons]), page.table(HEAD, [row(*one) for one in replaced])]
    return "\n\n".join(tables)


def write_page() -> None:
    page.fill(PAGE, markdown(list(reports())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = ", ".join(GATES)
    parser.add_argument("--gate", action="append", choices=GATES, metavar="ID", help=f"default: all of {every}")
    parser.add_argument("--budget", metavar="TIME", help="of each gate; default: that of stele gate")
    parser.add_argument("--table", action="store_true", help="measure nothing; write the page from the reports")
    arguments = parser.parse_args()
    for name in () if arguments.table else arguments.gate or GATES:
        print(f"--- {name}", file=sys.stderr, flush=True)
        run(GATES[name], arguments.budget)
    write_page()


if __name__ == "__main__":
    main()
