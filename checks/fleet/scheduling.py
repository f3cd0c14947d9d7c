"""How much time does a fleet lose between two launches?

    python -m checks fleet/scheduling [--nodes 1 2 4] [--launches 6] [--seconds 10]

Several Ray nodes run on this machine, with one place each. A worker with prepared answers takes the place of the
framework: its launches take a fixed time and need no processor. Writes the table of docs/fleet.md.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import nodes

from stele.measuring import machine
from stele.report import page

SCRIPTED = Path(__file__).parents[2] / "tests/support/scripted_worker.py"
PAGE = Path(__file__).parents[2] / "docs/fleet.md"
HEAD = ("nodes", "launches", "command, s", "from the first launch on, s", "work of a node, s", "lost")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4], metavar="N", help="default: 1 2 4")
    parser.add_argument("--launches", type=int, default=6, metavar="N", help="of each node; default: 6")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S", help="of a launch; default: 10")
    return parser.parse_args()


def describe(folder, seconds):
    """Describe an environment whose launches take a fixed time."""
    script = json.dumps({"seconds": [0.5, *[0.1] * 20], "accuracy": 0.5, "takes": seconds})
    command = json.dumps([sys.executable, str(SCRIPTED)])
    lines = ['label = "Fixed"', 'framework = "scripted"', f"command = {command}"]
    (folder / "fixed.toml").write_text("\n".join([*lines, "[variables]", f"SCRIPT = {json.dumps(script)}"]))


def measure(count, arguments):
    """Return a row of the table: ``stele fleet run`` on so many nodes."""
    with tempfile.TemporaryDirectory() as name:
        folder, launches = Path(name), count * arguments.launches
        describe(folder, arguments.seconds)
        variables = {"STELE_ENVIRONMENTS": name, "STELE_OFFLINE": "1"}
        with nodes.started(count, variables=variables) as cluster:
            first = run(cluster, folder, launches)
        status = read_status(folder)
    span, busy = status["ended"] - first, status["seconds"] / count
    numbers = (status["ended"] - status["began"], span, busy)
    return [str(count), str(launches), *(f"{number:.1f}" for number in numbers), f"{1 - busy / span:.1%}"]


def run(cluster, folder, launches):
    """Run the command, and return when its first launch began (seconds since 1970)."""
    command = [sys.executable, "-m", "stele", "fleet", "run", "--framework=fixed", "--task=gru", "--phase=train",
               "--scale=smoke", f"--address={cluster.address}", f"--launches={launches}"]  # fmt: skip
    variables = {**cluster.variables, "STELE_CACHE": str(cluster.folder / "cache1")}
    process, first = subprocess.Popen(command, cwd=folder, env=variables), None
    while process.poll() is None:
        running = (read_status(folder) or {"running": {}})["running"].values()
        first = first or min((one["since"] for one in running), default=None)
        time.sleep(0.2)
    if process.returncode or first is None:
        raise SystemExit(f"The command ended with {process.returncode}. See what it printed above.")
    return first


def read_status(folder):
    """Return the status of the command in a folder, or None if it has none yet."""
    paths = list(folder.glob(".stele/fleet/*/status.json"))
    return json.loads(paths[0].read_text()) if paths else None


def main():
    arguments = parse()
    rows = []
    for count in arguments.nodes:
        rows.append(measure(count, arguments))
        print("  ".join(rows[-1]), flush=True)
    facts = machine.facts()
    where = f"{facts.processor}, {facts.processors} processors"
    note = (
        f"Measured {date.today()}: all nodes on one machine ({where}), launches of {arguments.seconds:.0f} s. "
        "*Lost* is the part of the time from the first launch on in which a node does no work."
    )
    page.fill(PAGE, page.table(HEAD, rows, right=slice(0, None)) + "\n\n" + note)


if __name__ == "__main__":
    main()
