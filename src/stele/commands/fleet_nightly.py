"""``stele fleet nightly``: measure new releases on the nodes of a fleet, one framework and cell on each."""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stele.commands import fleet_run, nightly, options, releases
from stele.commands.nightly_of_code import PublishOptions
from stele.commands.options import FleetOptions
from stele.commands.releases import MeasuringOptions, SyncOptions
from stele.fleet import campaign, cluster, nights, node
from stele.fleet.work import CPU, Request, Work
from stele.measuring import content
from stele.measuring.progress import say
from stele.releases import frameworks, ledger
from stele.report import charts
from stele.text import slug


@dataclass(frozen=True, kw_only=True)
class FleetNightlyOptions:
    sync: SyncOptions = field(default_factory=SyncOptions)
    last: int = 8
    published: PublishOptions = field(default_factory=PublishOptions)
    measuring: MeasuringOptions = field(default_factory=nightly.measuring_all_tasks)
    fleet: FleetOptions = field(default_factory=FleetOptions)


def add(verbs: Any) -> None:
    about = "measure the new releases of frameworks, publish the site, and report steps"
    verb = verbs.add_parser("nightly", help=about, description=about, epilog=nightly.EPILOG)
    nightly.add_options(verb)
    releases.add_measuring_options(verb, locks=False)
    options.add_fleet_options(verb)
    options.declare(verb, fleet_nightly, FleetNightlyOptions, check=check)


def check(chosen: FleetNightlyOptions) -> None:
    """Raise SteleError for a framework that is not followed."""
    releases.check_frameworks(chosen.sync)


def fleet_nightly(chosen: FleetNightlyOptions) -> int:
    """Returns the exit code, as ``stele nightly`` does; 2 if something could not be measured."""
    charts.load_converter()  # now, because hours may pass until it is needed
    modes = releases.parse_modes(chosen.measuring.mode)
    releases.sync(chosen.sync)
    deadline = time.time() + chosen.measuring.budget
    place, _ = campaign.open_campaign(request_from(chosen))
    works = list(works_of(chosen, place, deadline, modes))
    new: set[str] = set()
    complete = True

    def save(work: Work, result: dict[str, Any]) -> str:
        nonlocal complete
        new.update(nights.add_to_history(result))
        complete = complete and result["complete"]
        for line in result["said"]:
            say(f"{work.what}: {line}")
        return str(result["place"][0])

    with cluster.connected(chosen.fleet.address, nights.measure_on_node) as connected:
        state = fleet_run.measure(connected, place, works, len(works), save)
    place.end()
    code = nightly.publish(chosen.published, sorted(new), complete=complete)
    return 2 if state.failed and code != 1 else code


def request_from(chosen: FleetNightlyOptions) -> Request:
    typed = {name: str(value) for name, value in options.flat(chosen).items()}
    return {"command": "nightly", "options": typed, "code": node.code(), "content": content.of_node()}


def works_of(
    chosen: FleetNightlyOptions, place: campaign.Campaign, deadline: float, modes: tuple[str, ...]
) -> Iterator[Work]:
    """Yield a work for each framework, cell and type."""
    code, measuring = node.code(), chosen.measuring
    with tempfile.TemporaryDirectory() as folder:
        packed = ledger.pack(Path(folder) / "ledger.bundle") if chosen.fleet.address else None
    for framework in chosen.sync.frameworks or frameworks.environment_names():
        tags = ledger.tags(framework)[-chosen.last :]
        for cell in measuring.cells.cells() if tags else ():
            for needs in fleet_run.needs_of(CPU, chosen.fleet.type):
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
                            "threads": options.threads_of(measuring.process.threads),
                            "malloc": measuring.process.malloc,
                        },
                        "launches": measuring.launches,
                        "scale": measuring.scale,
                        "error": measuring.error,
                        "data": fleet_run.fingerprint(cell.task),
                        "modes": modes,
                        "until": deadline,
                        "code": code,
                        "content": content.of_node(),
                        "ledger": packed,
                        "saved": nights.saved_files(tags),
                        "name": key,
                        "folder": None if chosen.fleet.address else str(place.folder.absolute()),
                    },
                    needs,
                )
