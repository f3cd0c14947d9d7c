"""Run a gate on one node of each device type: all arms of a gate are measured on one machine.

An actor of Ray holds the place of the gate on its node. Each of its calls measures until the next entry of the record,
which is a pass. This machine writes the entry before the next call. So a gate continues if its node is lost, or if its
command died: with its record on a machine with the same facts, and with a new one elsewhere.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from stele.fleet.dispatch import POLL, why_nowhere
from stele.fleet.stepwise import Event, Function
from stele.fleet.work import DONE, LACKS, LOST, UNFIT, Node, Reply, Request, Work
from stele.gate import record
from stele.gate.record import Entry, Record

MOST_LOST = 2  # nodes
HELD_ON_NODE = "model parity"  # entries whose weights lie on the node that measured them


class GateEngine(Protocol):
    """What holds a place on a node for each gate: ``cluster.Cluster``."""

    def nodes(self) -> list[Node]:
        """Return the nodes that are there now."""

    def hold(self, function: Function, work: Work, avoided: Collection[str]) -> Any:
        """Start a gate on a node that has what it needs, and return it."""

    def step(self, gate: Any) -> Any:
        """Let a gate measure until its next event, and return a handle."""

    def end(self, gate: Any) -> None:
        """End a gate."""

    def wait(self, handles: Sequence[Any], seconds: float) -> list[Any]:
        """Return the handles that have ended."""

    def answer(self, handle: Any) -> Reply:
        """Return a Reply with the event."""


@dataclass
class Arena:
    """A gate on a device type, as this machine sees it. ``record`` is None before the first event."""

    work: Work
    path: Path  # of a new record
    record: Record | None = None
    gate: Any = None  # of the engine
    result: Event | None = None  # the last event, with the verdicts
    lost: int = 0
    avoided: set[str] = field(default_factory=set)

    def request(self) -> Request:
        """Return what the node receives: the options, and what is recorded."""
        if self.record is None:
            return self.work.request
        entries = [entry for entry in self.record.entries() if entry["key"][0] != HELD_ON_NODE]
        return {**self.work.request, "header": self.record.header, "entries": entries}

    def write(self, event: Event) -> None:
        """Write what was measured, and keep the verdicts."""
        if "header" in event:
            self.record = record.create(self.path, event["header"])
        if "entries" in event and self.record is not None:
            self.record.add({tuple(entry["key"]): without_key(entry) for entry in event["entries"]})
        if "status" in event:
            self.result = event


def without_key(entry: Entry) -> Entry:
    return {name: value for name, value in entry.items() if name != "key"}


@dataclass
class Gates:
    """Gates that run at the same time. ``ended`` is told why one ended, or None if it has its verdicts."""

    engine: GateEngine
    function: Function
    event: Callable[[Arena, Event], object]
    ended: Callable[[Arena, str | None], object]
    calls: dict[Any, Arena] = field(default_factory=dict)

    def run(self, arenas: Sequence[Arena], idle: Callable[[], object]) -> None:
        """Run all of them. ``idle`` is called after each wait."""
        for arena in arenas:
            self.start(arena)
        while self.calls:
            for handle in self.engine.wait(list(self.calls), POLL):
                self.take(self.calls.pop(handle), self.engine.answer(handle))
            idle()

    def start(self, arena: Arena) -> None:
        """Start a gate on a node that it does not avoid."""
        if reason := why_nowhere(arena.work, self.engine.nodes(), arena.avoided):
            self.ended(arena, reason)
            return
        work = arena.work._replace(request=arena.request())
        arena.gate = self.engine.hold(self.function, work, arena.avoided)
        self.calls[self.engine.step(arena.gate)] = arena

    def take(self, arena: Arena, answer: Reply) -> None:
        """Write an event and go on; or start the gate again elsewhere, or give up."""
        if answer.status == DONE:
            arena.write(answer.result)
            self.event(arena, answer.result)
            if arena.result is None:
                self.calls[self.engine.step(arena.gate)] = arena
                return
        self.engine.end(arena.gate)
        if answer.status == DONE:
            self.ended(arena, None)
        elif failure := failure_of(arena, answer):
            self.ended(arena, failure)
        else:
            self.start(arena)


def failure_of(arena: Arena, answer: Reply) -> str | None:
    """Return why a gate cannot go on; None if another node has to continue it."""
    if answer.status == LOST:
        arena.lost += 1
        return None if arena.lost < MOST_LOST else f"{MOST_LOST} nodes were lost. {answer.message}"
    if answer.status in (UNFIT, LACKS) and answer.node is not None:
        arena.avoided.add(answer.node.id)
        return None
    return answer.message
