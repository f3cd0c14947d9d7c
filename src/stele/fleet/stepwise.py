"""Run a gate one pass at a time: it measures in a thread, which waits until its last entry has been taken."""

import queue
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from stele.fleet.work import Request
from stele.gate.record import Entry, Record

Event = dict[str, Any]
Emit = Callable[[Event], None]
Function = Callable[[Request, Emit], Event]  # what a node calls: it emits events, and returns the last one


class Relay(Record):
    """A record whose entries are emitted and not written: the machine of the command writes them."""

    def __init__(self, path: Path, header: dict[str, Any], entries: Iterable[Entry], emit: Emit) -> None:
        super().__init__(path, header, list(entries))
        self.emit = emit

    def write(self, entries: list[Entry]) -> None:
        self.emit({"entries": entries})


class Steps:
    """Calls a function in a thread. What the function emits is taken with ``next``; until then, it waits."""

    def __init__(self, function: Callable[[Emit], Event]) -> None:
        self.events: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
        self.permits = threading.Semaphore(0)
        self.waits = False  # whether the function waits until its event is taken
        threading.Thread(target=self.call, args=(function,), daemon=True).start()

    def call(self, function: Callable[[Emit], Event]) -> None:
        try:
            self.events.put(function(self.emit))
        except BaseException as error:
            self.events.put(error)

    def emit(self, event: Event) -> None:
        self.events.put(event)
        self.permits.acquire()

    def next(self) -> Event:
        """Return the next event; the last is what the function returned. Raises what the function raised."""
        if self.waits:
            self.permits.release()
        event = self.events.get()
        self.waits = True
        if isinstance(event, BaseException):
            raise event
        return event
