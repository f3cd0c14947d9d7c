"""Does a fleet of up to 200 nodes measure as many cells as that number of nodes should?

    python -m checks fleet/simulation [--places 1 10 50 100 200] [--cells 1000] [--seconds 10]

One Ray node on this machine offers as many places as the fleet has nodes. A cell waits for a fixed time, and returns a
Run. Ray, the command's own dispatch, its status and its store do the rest. All processes of Ray exist before the time
begins. Few places get fewer cells, so that a row takes two minutes at most. Writes the second table of docs/fleet.md.
"""

import argparse
import os
import tempfile
import time
from datetime import date
from functools import partial
from pathlib import Path

import nodes

from stele import schema
from stele.commands import fleet_run
from stele.fleet import campaign, cluster, node
from stele.fleet.work import Work
from stele.measuring import machine
from stele.measuring.run import Framework, Memory, Options, Origin, Run, Steps
from stele.measuring.settings import Settings
from stele.report import page

PAGE = Path(__file__).parents[2] / "docs/fleet.md"
HEAD = ("places", "cells", "time, s", "work of a place, s", "throughput, of linear")
LONGEST = 100.0  # seconds of a row
SETTLED = 5.0  # seconds after the start of Ray's last process


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    counts = {"type": int, "nargs": "+", "metavar": "N"}
    parser.add_argument("--places", **counts, default=[1, 10, 50, 100, 200], help="default: 1 10 50 100 200")
    parser.add_argument("--cells", type=int, default=1000, metavar="N", help="at most; default: 1000")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S", help="of a cell; default: 10")
    return parser.parse_args()


def cell(request):
    """Wait as long as a cell takes, and return its Run. The first cell of each place waits for all others."""
    if request["first"]:
        barrier = Path(request["barrier"])
        (barrier / request["first"]).touch()
        while (opens := opening(barrier, request["places"])) is None:
            time.sleep(1.0)
        time.sleep(max(0.0, opens - time.time()))
    else:
        time.sleep(request["seconds"])
    return request["run"]


def opening(barrier, places):
    """Return when all places have begun, and have settled (seconds since 1970); None before that."""
    arrived = list(barrier.iterdir())
    return max(path.stat().st_mtime for path in arrived) + SETTLED if len(arrived) == places else None


def works_of(places, cells, seconds, barrier):
    common = {"barrier": str(barrier), "places": places, "seconds": seconds, "run": schema.to_json(a_run())}
    return [
        Work(f"cell-{number}", f"cell {number}", {**common, "first": str(number) if number < places else ""})
        for number in range(places + cells)
    ]


def a_run():
    """Return a Run of usual size, about 20 KiB."""
    return Run(
        when="2026-01-01T00:00:00.000+00:00",
        environment="fixed",
        label="Fixed",
        task="gru",
        phase="train",
        scale="smoke",
        settings=Settings(),
        options=Options(),
        framework=Framework(import_seconds=0.5, versions={}, flags={}),
        machine=machine.facts(),
        data=Origin(origin="seeded noise", fingerprint="none"),
        weights="seeded",
        steps=Steps(seconds=(0.1,) * 2000, warmup=1, steady=True, batch=64),
        memory=Memory(host=None, device=None),
    )


def measure(places, arguments):
    """Return a row of the table."""
    cells = min(arguments.cells, int(places * LONGEST / arguments.seconds))
    with tempfile.TemporaryDirectory() as folder, nodes.started(1, places=places) as fleet:
        os.environ.update(fleet.variables)
        barrier = Path(folder) / "barrier"
        barrier.mkdir()
        works = works_of(places, cells, arguments.seconds, barrier)
        with node.working_in(folder), cluster.connected(fleet.address, cell) as engine:
            ended = run(engine, works)
        span, busy = ended - opening(barrier, places), arguments.seconds * cells / places
    return [str(places), f"{cells:,}", f"{span:.1f}", f"{busy:.1f}", f"{busy / span:.1%}"]


def run(engine, works):
    """Do the works as ``stele fleet run`` does, and return when the last one ended (seconds since 1970)."""
    place, _ = campaign.open_campaign({"cells": len(works)})
    state = fleet_run.measure(engine, place, works, len(works), partial(fleet_run.saved_on, place))
    if state.done != len(works) or state.done != len(list(campaign.RUNS.iterdir())):
        raise SystemExit(f"{state.done} of {len(works)} cells were measured. {state.messages[:1]}")
    return state.ended


def main():
    arguments, rows = parse(), []
    for places in arguments.places:
        rows.append(measure(places, arguments))
        print("  ".join(rows[-1]), flush=True)
    facts = machine.facts()
    note = (
        f"Measured {date.today()} on {facts.processor}, {facts.processors} processors: one Ray node with so many "
        f"places, cells of {arguments.seconds:.0f} s. At 100 %, no place waits between two cells."
    )
    page.fill(PAGE, page.table(HEAD, rows, right=slice(0, None)) + "\n\n" + note, by="stele, simulation")


if __name__ == "__main__":
    main()
