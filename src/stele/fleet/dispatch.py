"""Give work to the nodes of an engine, Ray or Slurm, and take the results as soon as they are there.

The engine schedules, retries and places. This decides: a node that is not fit to measure gets no more work, work that a
node cannot do goes to another node, and work whose nodes were lost is not tried again.
"""

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from stele.errors import SteleError
from stele.fleet.work import DONE, LACKS, LOST, UNFIT, Ending, Needs, Node, Reply, Started, Work

POLL = 1.0  # seconds without news, after which the status is written again
LONGEST_ABSENCE = 300.0  # seconds that work waits for a node after the last one with its device has left

Handle = Any  # of submitted work; the engine knows what it is


class Engine(Protocol):
    """What submits work to nodes."""

    def nodes(self) -> list[Node] | None:
        """Return the nodes that are there now; None if only the engine knows them."""

    def submit(self, works: Sequence[Work], avoided: Collection[str]) -> list[Handle]:
        """Submit work to any node that has what it needs, but not to those with these ids."""

    def wait(self, handles: Sequence[Handle], seconds: float) -> list[Handle]:
        """Return those that have ended; none if there are none for so long."""

    def answer(self, handle: Handle) -> Reply:
        """Return what came of submitted work that has ended."""

    def started(self) -> list[Started]:
        """Return what has started since the last call."""

    def cancel(self, handle: Handle) -> None:
        """Take back submitted work that has not started."""


class Dispatch:
    """Works that are submitted. ``tell`` is told what happens, in sentences."""

    def __init__(self, engine: Engine, tell: Callable[[str], object]) -> None:
        self.engine, self.tell = engine, tell
        self.unfit: dict[str, Node] = {}
        self.lacking: dict[str, set[str]] = {}  # the ids of nodes that cannot do a work, by its key
        self.submitted: dict[Handle, Work] = {}
        self.news: list[Started] = []  # what has started since the last call of ``started``
        self.begun: dict[str, set[str]] = {}  # the names of the nodes that started a work, by its key
        # since when no node can do submitted work: what it needs, and the ids of nodes that it avoids
        self.absent: dict[tuple[Needs, frozenset[str]], float] = {}
        self.checked = -POLL  # when this was found

    def submit(self, works: Sequence[Work]) -> list[Ending]:
        """Submit works. Return the failures of those that no node can do; the others are not held up by them."""
        nodes, failures = self.engine.nodes(), list[Ending]()
        groups: dict[frozenset[str], list[Work]] = {}
        for work in works:
            avoided = self.avoided(work)
            if nodes and (reason := why_nowhere(work, nodes, avoided)):
                failures.append(Ending(work, failure=reason))
            else:
                groups.setdefault(avoided, []).append(work)
        for avoided, group in groups.items():
            handles = self.engine.submit(group, avoided)
            self.submitted.update(zip(handles, group, strict=True))
        return failures

    def wait(self) -> list[Ending]:
        """Return what has ended; nothing if nothing did for a second. Submits again what another node has to do.

        Work whose last node has left ends after LONGEST_ABSENCE, unless another one comes.
        """
        outcomes, again = [], []
        ended = self.engine.wait(list(self.submitted), POLL)
        self.listen()
        for handle in ended:
            work = self.submitted.pop(handle)
            answer = self.engine.answer(handle)
            if self.belongs_elsewhere(work, answer):
                self.begun.pop(work.key, None)
                again.append(work)
            else:
                outcomes.append(outcome_of(work, answer, self.begun.get(work.key, ())))
        return outcomes + self.submit(again) + self.without_node()

    def listen(self) -> None:
        """Note what has started."""
        for event in self.engine.started():
            self.news.append(event)
            self.begun.setdefault(event.key, set()).add(event.node)

    def started(self) -> list[Started]:
        """Return what has started since the last call."""
        news, self.news = self.news, []
        return news

    def without_node(self) -> list[Ending]:
        """Return the failures of works that have waited too long for a node that can do them."""
        now = time.monotonic()
        if now - self.checked < POLL or (nodes := self.engine.nodes()) is None:
            return []
        self.checked, groups = now, self.groups()
        absent = {
            key: handles for key, handles in groups.items() if why_nowhere(self.submitted[handles[0]], nodes, key[1])
        }
        for needs, _ in absent.keys() - self.absent.keys():
            minutes = LONGEST_ABSENCE / 60
            self.tell(f"no node of the type {needs} is left. Its work waits {minutes:.0f} minutes for another node.")
        self.absent = {key: self.absent.get(key, now) for key in absent}
        late = [key for key in absent if now - self.absent[key] > LONGEST_ABSENCE]
        return [self.give_up(handle) for key in late for handle in absent[key]]

    def groups(self) -> dict[tuple[Needs, frozenset[str]], list[Handle]]:
        """Return the submitted works by what they need and what they avoid."""
        groups: dict[tuple[Needs, frozenset[str]], list[Handle]] = {}
        for handle, work in self.submitted.items():
            groups.setdefault((work.needs, self.avoided(work)), []).append(handle)
        return groups

    def give_up(self, handle: Handle) -> Ending:
        self.engine.cancel(handle)
        work = self.submitted.pop(handle)
        return Ending(work, failure=f"the last node with a {work.needs} has left.")

    def avoided(self, work: Work) -> frozenset[str]:
        """Return the ids of the nodes that cannot do a work."""
        return frozenset(self.unfit) | self.lacking.get(work.key, set())

    def belongs_elsewhere(self, work: Work, answer: Reply) -> bool:
        """Return whether another node has to do the work, and note that this one does not."""
        node = answer.node
        if node is None or answer.status not in (UNFIT, LACKS):
            return False
        if answer.status == LACKS:
            self.lacking.setdefault(work.key, set()).add(node.id)
            self.tell(f"{work.what}: not on {node.name}: {answer.message}")
        elif node.id not in self.unfit:
            self.unfit[node.id] = node
            self.tell(f"{node.name} gets no more work: {answer.message}")
        return True


def run(
    dispatch: Dispatch,
    works: Sequence[Work],
    *,
    ended: Callable[[Ending], object],
    idle: Callable[[list[Started]], object],
) -> None:
    """Do all works. ``ended`` receives each outcome at once; ``idle`` is called after each wait, with what started."""
    for outcome in dispatch.submit(works):
        ended(outcome)
    while dispatch.submitted:
        for outcome in dispatch.wait():
            ended(outcome)
        idle(dispatch.started())


def outcome_of(work: Work, answer: Reply, begun: Collection[str]) -> Ending:
    """Return how work ended. ``begun`` are the names of the nodes that have started it."""
    if answer.status == DONE:
        return Ending(work, answer.result)
    if answer.status == LOST:
        return Ending(work, failure=f"{loss(len(begun))}: {answer.message or 'see their logs'}")
    return Ending(work, failure=answer.message)


def loss(nodes: int) -> str:
    """Say what was lost: nodes that perhaps the work ended, or nodes before they had started it."""
    if nodes == 0:
        return "it had not begun when the fleet lost its nodes. The same command measures it"
    if nodes == 1:
        return "its node was lost while it measured it, so it is not tried again. Perhaps it ends its node"
    return "two nodes were lost while they measured it, so it is not tried again. Perhaps it ends them"


def why_nowhere(work: Work, nodes: Sequence[Node], avoided: Collection[str]) -> str | None:
    """Return why no node can do the work, or None if one can."""
    if not any(node.has(work.needs) for node in nodes):
        types = ", ".join(sorted({name for node in nodes for name in node.types})) or "none"
        return f"no node has the type {work.needs}. The types of the nodes: {types}."
    if not any(node.has(work.needs) and node.id not in avoided for node in nodes):
        return f"no node with a {work.needs} is left that can measure it."
    return None


def places(nodes: Sequence[Node], works: Sequence[Work], unfit: Collection[str] = ()) -> int:
    """Return how many of these works the nodes do at the same time."""
    devices = {work.needs.device for work in works}
    fit = [node for node in nodes if node.id not in unfit and any(node.has(work.needs) for work in works)]
    return sum(max(node.room(device) for device in devices) for node in fit)


def one_of_each(works: Sequence[Work]) -> None:
    """Raise SteleError if two works have the same key: the result of one would replace that of the other."""
    keys = [work.key for work in works]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise SteleError(f"Named twice: {', '.join(twice)}. Name each once.")
