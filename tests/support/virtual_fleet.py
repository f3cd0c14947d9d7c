"""Engines of a fleet without other processes."""

import heapq
import random

from stele.fleet import dispatch
from stele.fleet.dispatch import Dispatch
from stele.fleet.stepwise import Steps
from stele.fleet.work import (
    DONE,
    LOST,
    Needs,
    Node,
    Reply,
    Started,
    Work,
    attempt,
)

PROCESSOR = "epyc"


def nodes(count, *, types=(PROCESSOR,), places=1, gpus=0):
    return [Node(f"id{number}", f"node{number}", tuple(types), places, gpus) for number in range(count)]


class Virtual:
    """Does each work on the first free node that has what it needs, as Ray does, on a virtual clock.

    Lost work was started a second time, on another node if there is one.

    ``do(node, work)`` -> Reply.
    """

    def __init__(self, fleet, do=None, *, seconds=10.0, delay=0.0):
        self.fleet, self.seconds, self.delay = fleet, seconds, delay
        self.do = do or (lambda node, work: Reply(DONE, node, work.key))
        self.now, self.count = 0.0, 0
        self.queue, self.running, self.ended, self.events = [], [], {}, []
        self.free = {node.id: node.places for node in fleet}
        self.placed = {}  # the node of each work, in order

    def nodes(self):
        return self.fleet

    def submit(self, works, avoided):
        handles = list(range(self.count, self.count + len(works)))
        self.count += len(works)
        self.queue += [(handle, work, avoided) for handle, work in zip(handles, works, strict=True)]
        self.place()
        return handles

    def place(self):
        waiting = []
        for handle, work, avoided in self.queue:
            fit = [node for node in self.fleet if self.takes(node, work, avoided)]
            if not fit:
                waiting.append((handle, work, avoided))
                continue
            node = fit[0]
            self.free[node.id] -= 1
            self.placed.setdefault(work.key, []).append(node.name)
            self.events.append(Started(work.key, node.name, self.now))
            heapq.heappush(self.running, (self.now + self.delay + self.seconds, handle, node, work))
        self.queue = waiting

    def takes(self, node, work, avoided):
        return self.free[node.id] > 0 and node.id not in avoided and node.has(work.needs)

    def wait(self, handles, seconds):
        if not self.running:
            return []
        self.now = self.running[0][0]
        ended = []
        while self.running and self.running[0][0] == self.now:
            _, handle, node, work = heapq.heappop(self.running)
            self.free[node.id] += 1
            self.ended[handle] = self.do(node, work)
            if self.ended[handle].status == LOST:
                again = next((one for one in self.fleet if one is not node), node)
                self.events.append(Started(work.key, again.name, self.now))
            ended.append(handle)
        self.place()
        return ended

    def answer(self, handle):
        return self.ended.pop(handle)

    def cancel(self, handle):
        self.queue = [one for one in self.queue if one[0] != handle]

    def started(self):
        events, self.events = self.events, []
        return events


def losing(share, seed=0):
    """Return a ``do`` that loses a share of the works, drawn from a seed."""
    draw = random.Random(seed)
    return lambda node, work: Reply(LOST) if draw.random() < share else Reply(DONE, node, work.key)


class Here:
    """Does all work in this process, at once."""

    def __init__(self, function=None):
        self.function, self.ended = function, {}

    def nodes(self):
        return nodes(1, types=(PROCESSOR, "H100", "H200"), gpus=1)

    def submit(self, works, avoided):
        return [self.keep(attempt(self.nodes()[0], lambda work=work: self.function(work.request))) for work in works]

    def keep(self, answer):
        self.ended[len(self.ended)] = answer
        return len(self.ended) - 1

    def wait(self, handles, seconds):
        return list(handles)

    def answer(self, handle):
        return self.ended[handle]

    def started(self):
        return []

    def hold(self, function, work, avoided):
        return Steps(lambda emit: function(work.request, emit))

    def step(self, gate):
        return self.keep(attempt(self.nodes()[0], gate.next))

    def end(self, gate):
        pass


def works(count, needs=Needs()):  # noqa: B008
    return [Work(f"cell-{number}", f"cell {number}", {}, needs) for number in range(count)]


def run(engine, wanted):
    """Return the outcomes by key, and what was told."""
    told, outcomes = [], {}

    def ended(outcome):
        assert outcome.work.key not in outcomes, "a work ended twice"
        outcomes[outcome.work.key] = outcome

    dispatch.run(Dispatch(engine, told.append), wanted, ended=ended, idle=lambda events: None)
    return outcomes, told
