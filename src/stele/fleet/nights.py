"""Measure the releases of a framework on a node, and add what it measured to the history of this machine.

All releases of a cell are measured side by side on one node. Its numbers have the name of its machine, so the lines of
the history never mix machines.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stele import files
from stele.fleet import node, slots
from stele.fleet.work import Request
from stele.measuring.settings import Settings
from stele.releases import campaign, history, ledger
from stele.releases.history import Place
from stele.subjects import Cell

MACHINE = "machine.json"


def saved_files(tags: Sequence[str]) -> dict[str, str]:
    """Return the result files of releases on every machine, by their path below the folder of the results."""
    commits = {ledger.commit(tag)[0][:8] for tag in tags}
    paths = [path for path in history.RESULTS.glob("*/*.json") if path.name.partition("-")[0] in commits]
    paths += history.RESULTS.glob(f"*/{MACHINE}")
    return {str(path.relative_to(history.RESULTS)): path.read_text(encoding="utf-8") for path in sorted(paths)}


def measure_on_node(request: Request) -> dict[str, Any]:
    """Measure the releases of ``request`` that have no numbers on this machine. Returns all of its numbers.

    Raises NodeUnfit, and SteleError if nothing can be measured.
    """
    node.check(request["code"])
    node.check_content(request["content"])
    cell, messages = Cell(*request["cell"]), list[str]()
    what = f"stele fleet nightly: {request['framework']} {cell}"
    with node.working_in(request["folder"], request["name"]), slots.slot_for(what, "cpu", messages.append):
        node.inputs(cell.task, request["data"])
        if request["ledger"] is not None:
            ledger.unpack(request["ledger"], Path("ledger.bundle"))
        for name, text in request["saved"].items():
            files.write_text(history.RESULTS / name, text)
        measuring = campaign.Request(
            (cell,),
            Settings(**request["settings"]),
            request["launches"],
            request["scale"],
            request["error"],
            time.monotonic() + request["until"] - time.time(),
            messages.append,
            modes=tuple(request["modes"]),
        )
        campaign.track(measuring.modes)
        complete = campaign.measure_releases(request["tags"], measuring)
        return {**numbers_here(request["tags"], cell), "complete": complete, "said": messages}


def numbers_here(tags: Sequence[str], cell: Cell) -> dict[str, Any]:
    """Return the numbers of a cell on this machine, by release, metric and mode; None for one that has no file."""
    place = history.current_place()
    facts = history.RESULTS / place.machine / MACHINE
    return {
        "place": list(place),
        "facts": facts.read_text(encoding="utf-8") if facts.exists() else None,
        "values": {tag: of_cell(history.read_values(tag, place), cell) for tag in tags},
        "intervals": {tag: of_cell(history.read_intervals(tag, place), cell) for tag in tags},
        "contents": {tag: of_cell({"": history.read_contents(tag, place)}, cell) for tag in tags},
    }


def of_cell(by_metric: Mapping[str, Mapping[str, Any]] | None, cell: Cell) -> dict[str, dict[str, Any]] | None:
    """Return what belongs to the modes of one cell."""
    if by_metric is None:
        return None
    return {
        metric: {name: value for name, value in values.items() if name.startswith(f"{cell} ")}
        for metric, values in by_metric.items()
    }


def add_to_history(result: Mapping[str, Any]) -> list[str]:
    """Save the numbers of a node in the history of this machine. Returns the releases with cells that are new."""
    place, new = Place(*result["place"]), []
    facts = history.RESULTS / place.machine / MACHINE
    if result["facts"] is not None and not facts.exists():
        files.write_text(facts, result["facts"])
    for tag, values in result["values"].items():
        if values is None:
            continue
        before = history.numbers(tag, place)
        failure = None if any(values.values()) else "it could not be built on the node"
        if failure and before:
            continue
        ranges = result["intervals"].get(tag) or {}
        contents = (result["contents"].get(tag) or {}).get("", {})
        history.save(tag, place, values, ranges=ranges, contents=contents, failure=failure)
        new += [tag] if history.has_more(history.numbers(tag, place), before) else []
    return new
