"""What runs where, what waits, and the estimated end: a file that the command of a fleet writes, and its text."""

import os
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import psutil

from stele import files, schema, text
from stele.errors import SteleError
from stele.fleet.work import Ending, Started
from stele.measuring import machine
from stele.schema import about

FILE = "status.json"


class Running(msgspec.Struct, frozen=True):
    """Work that a node does."""

    what: Annotated[str, about("what is measured")]
    node: Annotated[str, about("host name of its node")]
    since: Annotated[float, about("when it started", "s since 1970")]


class Status(msgspec.Struct, kw_only=True):
    """The state of a command, which changes while it measures."""

    command: Annotated[str, about("the command, as it was typed")]
    machine: Annotated[str, about("host name of the machine of the command")]
    pid: Annotated[int, about("its process")]
    began: Annotated[float, about("when it started", "s since 1970")]
    total: Annotated[int, about("number of launches, of gates, or of frameworks times cells")]
    done: Annotated[int, about("how many are measured")] = 0
    failed: Annotated[int, about("how many failed")] = 0
    places: Annotated[int, about("number of measurements that the fleet does at the same time")] = 1
    seconds: Annotated[float, about("what those took that this command timed, in all", "s")] = 0.0
    timed: Annotated[int, about("of those that are done, how many this command timed")] = 0
    running: Annotated[dict[str, Running], about("what runs, by its key")] = {}
    messages: Annotated[list[str], about("what failed, and why")] = []
    ended: Annotated[
        float | None, about("when it ended; null while it runs, or if it was interrupted", "s since 1970")
    ] = None

    @property
    def waiting(self) -> int:
        return self.total - self.done - self.failed - len(self.running)

    def left(self, now: float) -> float | None:
        """Return the seconds until all is done, if the rest takes as long as what was timed; None before that."""
        if not self.timed:
            return None
        each = self.seconds / self.timed
        spent = sum(min(now - running.since, each) for running in self.running.values())
        return max((self.waiting + len(self.running)) * each - spent, 0.0) / max(self.places, 1)

    def start(self, what: str, event: Started) -> None:
        self.running[event.key] = Running(what, event.node, event.when)

    def end(self, outcome: Ending, now: float) -> None:
        begun = self.running.pop(outcome.work.key, None)
        if outcome.failure is None:
            self.done += 1
            if begun:
                self.timed, self.seconds = self.timed + 1, self.seconds + now - begun.since
        else:
            self.failed += 1
            self.messages.append(f"{outcome.work.what}: {outcome.failure}")


class StatusFile(Status, kw_only=True, rename={"not_started": "waiting", "remaining": "left"}):
    """`.stele/fleet/<date>-<id>/status.json`, which `stele fleet status` shows.

    The command that measures writes it about once in a second.
    """

    not_started: Annotated[int, about("how many have not started")] = 0
    remaining: Annotated[float | None, about("estimated time until the end; null before the first is timed", "s")] = (
        None
    )
    when: Annotated[float, about("when this was written", "s since 1970")] = 0.0


def begin(command: str, works: int) -> Status:
    """Return the status of a command that starts now, on this machine."""
    return Status(
        command=text.without_passwords(command),
        machine=str(machine.facts().name),
        pid=os.getpid(),
        began=time.time(),
        total=works,
    )


def write(path: Path, status: Status) -> None:
    now = time.time()
    fields = msgspec.structs.asdict(status)
    content = StatusFile(**fields, not_started=status.waiting, remaining=status.left(now), when=now)
    files.write_text(path, schema.document(content))


def read(path: Path) -> Status:
    """Return the status in a file. Raises SteleError if it is none."""
    try:
        return schema.of_document(schema.read(path), StatusFile)
    except (OSError, ValueError) as error:
        raise SteleError(f"Cannot read the status in {path}: {error}.") from None


def lines(status: Status, now: float) -> list[str]:
    """Return the status as text: the counts, what runs where, what went wrong, and the estimated end."""
    counts = f"{status.done} of {status.total} measured, {status.failed} failed"
    if status.ended is not None:
        return [f"{status.command}: ended {clock(status.ended)}, {counts}", *status.messages]
    rows = [
        ["running", running.what, running.node, f"since {(now - running.since) / 60:.1f} min"]
        for running in sorted(status.running.values(), key=lambda running: running.since)
    ]
    left = status.left(now)
    end = "the end is not known yet" if left is None else f"estimated end {clock(now + left)}"
    head = f"{status.command}: {counts}, {len(rows)} running, {status.waiting} waiting; {end}"
    return [head, *text.align(rows), *status.messages, *died(status)]


def died(status: Status) -> list[str]:
    """Return what to do if the command has died on this machine."""
    if status.machine != str(machine.facts().name) or psutil.pid_exists(status.pid):
        return []
    return [f"The command (process {status.pid}) does not run any more. It continues with: {status.command}"]


def clock(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment):%Y-%m-%d %H:%M}"
