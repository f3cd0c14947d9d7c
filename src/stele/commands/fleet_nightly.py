"""``stele fleet nightly``: measure new releases on the nodes of a fleet, one framework and cell on each."""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stele.commands import fleet_run, nightly, options, releases
from stele.commands.options import say
from stele.environments.description import slug
from stele.fleet import campaign, cluster, nights, node
from stele.fleet.work import CPU, Work
from stele.measuring import content
from stele.releases import frameworks, ledger
from stele_worker import tasks


def add(verbs: Any) -> None:
    about = "measure the new releases of frameworks, publish the site, and report steps"
    verb = verbs.add_parser("nightly", help=about, description=about, epilog=nightly.EPILOG)
    nightly.add_options(verb)
    releases.add_measuring_options(verb, locks=False)
    options.add_fleet_options(verb)
    verb.set_defaults(command=fleet_nightly, task=",".join(tasks.NAMES))


def fleet_nightly(arguments: argparse.Namespace) -> int:
    """Returns the exit code, as ``stele nightly`` does; 2 if something could not be measured."""
    modes = releases.parse_modes(arguments.mode)
    releases.sync(arguments)
    deadline = time.time() + arguments.budget
    place, _ = campaign.open_campaign(request_from(arguments))
    works = list(works_of(arguments, place, deadline, modes))
    new: set[str] = set()
    complete = True

    def save(work: Work, result: dict[str, Any]) -> str:
        nonlocal complete
        new.update(nights.add_to_history(result))
        complete = complete and result["complete"]
        for line in result["said"]:
            say(f"{work.what}: {line}")
        return str(result["place"][0])

    with cluster.connected(arguments.address, nights.measure_on_node) as connected:
        state = fleet_run.measure(connected, place, works, len(works), save)
    place.end()
    code = nightly.publish(arguments, sorted(new), complete=complete)
    return 2 if state.failed and code != 1 else code


def request_from(arguments: argparse.Namespace) -> dict[str, Any]:
    typed = {name: str(value) for name, value in vars(arguments).items() if name not in ("command", "typed")}
    return {"command": "nightly", "options": typed, "code": node.code(), "content": content.of_node()}


def works_of(
    arguments: argparse.Namespace, place: campaign.Campaign, deadline: float, modes: tuple[str, ...]
) -> Iterator[Work]:
    """Yield a work for each framework, cell and type."""
    code = node.code()
    with tempfile.TemporaryDirectory() as folder:
        packed = ledger.pack(Path(folder) / "ledger.bundle") if arguments.address else None
    for framework in arguments.frameworks or frameworks.environment_names():
        tags = ledger.tags(framework)[-arguments.last :]
        for cell in options.parse_cells(arguments.task, arguments.phase) if tags else ():
            for needs in fleet_run.needs_of(CPU, arguments.type):
                key = slug(f"{framework}-{cell.task}-{cell.phase}-{needs.type or needs.device}")
                yield Work(
                    key,
                    f"{framework} {cell}" + (f" on {needs.type}" if needs.type else ""),
                    {
                        "framework": framework,
                        "tags": tags,
                        "cell": list(cell),
                        "settings": {
                            "device": CPU,
                            "threads": options.threads_from(arguments),
                            "malloc": arguments.malloc,
                        },
                        "launches": arguments.launches,
                        "scale": arguments.scale,
                        "error": arguments.error,
                        "data": fleet_run.fingerprint(cell.task),
                        "modes": modes,
                        "until": deadline,
                        "code": code,
                        "content": content.of_node(),
                        "ledger": packed,
                        "saved": nights.saved_files(tags),
                        "name": key,
                        "folder": None if arguments.address else str(place.folder.absolute()),
                    },
                    needs,
                )
