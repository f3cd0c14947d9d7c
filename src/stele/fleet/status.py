"""What runs where, what waits, and the estimated end: a file that the command of a fleet writes, and its text."""

import json
import os
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypedDict

import psutil

from stele import files, schema, text
from stele.errors import SteleError
from stele.fleet.work import Outcome, Started
from stele.measuring import machine

FILE = "status.json"


class Running(TypedDict):
    """Work that a node does, and since when (seconds since 1970)."""

    what: str
    node: str
    since: float


@dataclass
class Status:
    """The state of a command. Times are seconds since 1970; ``ended`` is None while the command runs."""

    command: str
    machine: str
    pid: int
    began: float
    total: int
    done: int = 0
    failed: int = 0
    places: int = 1  # measurements that the fleet does at the same time
    seconds: float = 0.0  # that the timed works took, in all
    timed: int = 0  # works of this command whose start and end were seen
    running: dict[str, Running] = field(default_factory=dict)  # by key
    messages: list[str] = field(default_factory=list)
    ended: float | None = None

    @property
    def waiting(self) -> int:
        return self.total - self.done - self.failed - len(self.running)

    def left(self, now: float) -> float | None:
        """Return the seconds until all is done, if the rest takes as long as what was timed; None before that."""
        if not self.timed:
            return None
        each = self.seconds / self.timed
        spent = sum(min(now - one["since"], each) for one in self.running.values())
        return max((self.waiting + len(self.running)) * each - spent, 0.0) / max(self.places, 1)

    def start(self, what: str, event: Started) -> None:
        self.running[event.key] = {"what": what, "node": event.node, "since": event.when}

    def end(self, outcome: Outcome, now: float) -> None:
        begun = self.running.pop(outcome.work.key, None)
        if outcome.failure is None:
            self.done += 1
            if begun:
                self.timed, self.seconds = self.timed + 1, self.seconds + now - begun["since"]
        else:
            self.failed += 1
            self.messages.append(f"{outcome.work.what}: {outcome.failure}")


def begin(command: str, works: int) -> Status:
    """Return the status of a command that starts now, on this machine."""
    return Status(
        text.without_passwords(command), str(machine.facts()["name"]), os.getpid(), time.time(), works
    )


def write(path: Path, status: Status) -> None:
    now = time.time()
    content = {**asdict(status), "waiting": status.waiting, "left": status.left(now), "when": now}
    files.write_text(path, json.dumps(schema.wrap(content), indent=1) + "\n")


def read(path: Path) -> Status:
    """Return the status in a file. Raises SteleError if it is none."""
    try:
        content = schema.unwrap(schema.read(path))
        fields = {name: value for name, value in content.items() if name in Status.__dataclass_fields__}
        status = Status(**fields)
        for one in status.running.values():
            schema.check(one, Running, "running")
        for name in ("total", "done", "failed", "places", "pid"):
            schema.check(getattr(status, name), int, name)
        return status
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SteleError(f"Cannot read the status in {path}: {error}.") from None


def lines(status: Status, now: float) -> list[str]:
    """Return the status as text: the counts, what runs where, what went wrong, and the estimated end."""
    counts = f"{status.done} of {status.total} measured, {status.failed} failed"
    if status.ended is not None:
        return [f"{status.command}: ended {clock(status.ended)}, {counts}", *status.messages]
    rows = [
        ["running", one["what"], one["node"], f"since {(now - one['since']) / 60:.1f} min"]
        for one in sorted(status.running.values(), key=lambda one: one["since"])
    ]
    left = status.left(now)
    end = "the end is not known yet" if left is None else f"estimated end {clock(now + left)}"
    head = f"{status.command}: {counts}, {len(rows)} running, {status.waiting} waiting; {end}"
    return [head, *text.align(rows), *status.messages, *died(status)]


def died(status: Status) -> list[str]:
    """Return what to do if the command has died on this machine."""
    if status.machine != str(machine.facts()["name"]) or psutil.pid_exists(status.pid):
        return []
    return [f"The command (process {status.pid}) does not run any more. It continues with: {status.command}"]


def clock(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment):%Y-%m-%d %H:%M}"
