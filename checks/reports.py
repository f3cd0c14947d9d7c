"""Does a gate find what users reported, and does a bisection name the release?

    python -m checks reports [--only NAME]
    python -m checks reports --table

Gates a function of each report of checks/public_reports from the last good to the first bad release, bisects it, and
writes docs/results/reports.md. Exit: 0 if each was found and named; 1 otherwise.
"""

import argparse
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

from stele.measuring import machine
from stele.report import page

ROOT = Path(__file__).parents[1]
FOLDER, PAGE = Path(".stele/reports"), ROOT / "docs" / "results" / "reports.md"
# name: (report, function, good release, bad release)
REPORTS = {
    "while_loop": ("jax-ml/jax#25190", "last_index", "0.4.31", "0.4.33"),
    "float64_scan": ("jax-ml/jax#36799", "variances", "0.4.31", "0.4.33"),
}
HEAD = ("report", "gate", "status", "verdict", "minutes", "first slower release", "minutes of the bisection")


def run(name: str) -> None:
    """Gate and bisect a report, and store what they said."""
    _, function, good, bad = REPORTS[name]
    subject = ["--function", f"{ROOT / 'checks/public_reports' / name}.py:{function}", "--metric", "call"]
    folder = FOLDER.absolute() / name
    folder.mkdir(parents=True, exist_ok=True)
    commands = {"gate": ["gate", f"jax=={good}", f"jax=={bad}"], "bisect": ["bisect", "jax", good, bad]}
    result: dict[str, Any] = {"when": date.today().isoformat()}
    for kind, command in commands.items():
        start = perf_counter()
        subprocess.run(["stele", *command, *subject, "--json", f"{kind}.json"], cwd=folder, check=False)
        result[f"{kind} minutes"] = (perf_counter() - start) / 60
        result[kind] = json.loads((folder / f"{kind}.json").read_text(encoding="utf-8"))
    (folder / "result.json").write_text(json.dumps(result) + "\n", encoding="utf-8")


def row(name: str, result: dict[str, Any]) -> list[str]:
    report, function, good, bad = REPORTS[name]
    [verdict] = [one for one in result["gate"]["verdicts"] if one["metric"] == "call"]
    command = f"`stele gate jax=={good} jax=={bad} --function {name}.py:{function} --metric call`"
    return [
        f"{report}: {name.replace('_', ' ')}",
        command,
        verdict["status"],
        verdict["message"],
        f"{result['gate minutes']:.1f}",
        ", ".join(result["bisect"]["suspects"]),
        f"{result['bisect minutes']:.1f}",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=REPORTS, metavar="NAME", help=f"of {', '.join(REPORTS)}")
    parser.add_argument("--table", action="store_true", help="measure nothing; write the page again")
    arguments = parser.parse_args()
    for name in () if arguments.table else arguments.only or REPORTS:
        print(f"--- {name}", file=sys.stderr, flush=True)
        run(name)
    stored = {name: FOLDER / name / "result.json" for name in REPORTS}
    results = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in stored.items() if path.exists()}
    if not results:
        raise SystemExit("No report was measured. Run without --table.")
    table = page.table(HEAD, [row(name, result) for name, result in results.items()])
    days = ", ".join(sorted({result["when"] for result in results.values()}))
    page.fill(PAGE, f"{table}\n\nMeasured on {machine.name_of(machine.facts())}, {days}.")
    good = all(r["gate"]["status"] == "REGRESSED" and len(r["bisect"]["suspects"]) == 1 for r in results.values())
    return 0 if good and len(results) == len(REPORTS) else 1


if __name__ == "__main__":
    sys.exit(main())
