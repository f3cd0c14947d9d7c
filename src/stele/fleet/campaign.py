"""The folder of a command of a fleet: what it wants, and how far it is. A command that was killed continues there.

    .stele/fleet/<date>-<id>/campaign.json   the request; its id is a hash of it
    .stele/fleet/<date>-<id>/status.json     what runs where, for ``stele fleet status``
    .stele/fleet/<date>-<id>/lock            held while a command measures
    .stele/fleet/<date>-<id>/ended           nothing is left to measure; the same command starts again

A Run is one file in the store of Runs, whose name follows from the campaign and the launch: so no launch can have two.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import filelock
import msgspec

from stele import files, schema
from stele.errors import SteleError
from stele.fleet.work import Work
from stele.measuring.run import Run
from stele.schema import about
from stele.text import slug

FOLDER, RUNS = Path(".stele/fleet"), Path(".stele/runs")


class CampaignFile(msgspec.Struct, frozen=True):
    """`.stele/fleet/<date>-<id>/campaign.json`. Its id is a hash of the request.

    A command with the same request continues here.
    """

    request: Annotated[dict[str, Any], about("the command and its options; internal")]


class Campaign:
    """The folder of a request."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = filelock.FileLock(folder / "lock")

    @property
    def ended(self) -> bool:
        return (self.folder / "ended").exists()

    def end(self) -> None:
        """Note that nothing is left to measure."""
        files.write_text(self.folder / "ended", "")

    def hold(self) -> None:
        """Keep other commands out as long as this object exists. Raises SteleError if one measures this campaign."""
        try:
            self.lock.acquire(blocking=False)
        except filelock.Timeout:
            raise SteleError(
                "Another command measures the same already: see stele fleet status. Wait until it has ended."
            ) from None

    def path_of(self, work: Work) -> Path:
        return RUNS / f"{self.folder.name}-{slug(work.key)}.json"

    def missing(self, works: Sequence[Work]) -> list[Work]:
        """Return what is not measured yet."""
        return [work for work in works if not self.path_of(work).exists()]

    def save(self, work: Work, run: Mapping[str, Any]) -> Run:
        """Write a Run that a node returned as JSON. Raises SteleError or ValueError if it is none."""
        checked = schema.convert(run, Run)
        files.write_text(self.path_of(work), schema.document({"run": checked}))
        return checked


def identity(request: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:8]


def open_campaign(request: Mapping[str, Any], *, again: bool = False) -> tuple[Campaign, bool]:
    """Return the newest campaign with this request that has not ended, or a new one; and whether it is continued.

    Raises SteleError if another command measures it.
    """
    name = identity(request)
    earlier = [Campaign(path) for path in sorted(FOLDER.glob(f"*-{name}"))]
    if earlier and not earlier[-1].ended:
        earlier[-1].hold()
        if not again:
            return earlier[-1], True
    campaign = Campaign(FOLDER / f"{datetime.now():%Y%m%dT%H%M%S}-{name}")
    files.write_text(campaign.folder / "campaign.json", schema.document(CampaignFile(dict(request))))
    campaign.hold()
    return campaign, False


def newest() -> Campaign | None:
    """Return the campaign whose status was written last, or None."""
    paths = sorted(FOLDER.glob("*/status.json"), key=lambda path: path.stat().st_mtime)
    return Campaign(paths[-1].parent) if paths else None
