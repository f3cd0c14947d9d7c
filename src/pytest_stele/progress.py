"""What a person sees while a worker computes: on a terminal a live bar, with the time that all tests still need."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from statistics import mean
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytest

from pytest_stele.options import PREFIX

if TYPE_CHECKING:
    from stele.measuring import answers


class SteleMessage(UserWarning):
    """A message from a process of pytest-xdist, which has no terminal: only warnings reach the controller at once."""


class Progress:
    """``progress(title)`` is a context that shows what the worker reports; ``say(line)`` prints a line.

    In a process of pytest-xdist both do nothing, because its results are shown at the end of the session.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        under_xdist = hasattr(config, "workerinput")
        self._reporter: Any = None if under_xdist else config.pluginmanager.get_plugin("terminalreporter")
        self._capture: Any = config.pluginmanager.get_plugin("capturemanager")

    @contextmanager
    def __call__(self, title: str) -> Iterator[Callable[["answers.Progress"], None]]:
        if self._reporter is None or not self._reporter.isatty:
            yield lambda report: None
            return
        from stele.measuring.progress import bar

        with self.uncaptured(), self._next_line(), bar(title) as show:
            yield show

    @contextmanager
    def _next_line(self) -> Iterator[None]:
        """Let something be drawn below the line that pytest writes, which then goes on where it stopped."""
        column = self._reporter._tw.width_of_current_line + 1
        self._reporter.flush()
        sys.stderr.write("\n")
        try:
            yield
        finally:
            sys.stderr.write(f"\x1b[A\x1b[{column}G")
            sys.stderr.flush()

    def say(self, line: str) -> None:
        if self._reporter is not None:
            with self.past_capture():
                self._reporter.write_line(line)

    def notify(self, line: str) -> None:
        """Print a line at once, also from a process of pytest-xdist."""
        self.say(line)
        if self._reporter is None:
            warning = warnings.WarningMessage(SteleMessage(line), SteleMessage, __file__, 0)
            facts = {"warning_message": warning, "when": "runtest", "nodeid": "", "location": None}
            self._config.hook.pytest_warning_recorded.call_historic(kwargs=facts)

    @contextmanager
    def past_capture(self) -> Iterator[None]:
        """Write to the terminal at the start of a line, although pytest captures what tests print."""
        with self.uncaptured():
            if self._reporter is not None:
                self._reporter.ensure_newline()
            yield

    def uncaptured(self) -> AbstractContextManager[None]:
        """Write to the terminal although pytest captures what tests print."""
        return nullcontext() if self._capture is None else self._capture.global_and_fixture_disabled()


class Durations:
    """How long the timed tests of a session take: a plugin of pytest that reads and writes pytest's cache, if it is on.

    A test that has not run yet, in this session or an earlier one of the same ``kind``, is expected to take as long as
    the mean of the others.
    """

    def __init__(self, session: pytest.Session, kind: str) -> None:
        self._began = perf_counter()
        under_xdist = hasattr(session.config, "workerinput")  # whose processes show nothing
        self._cache: Any = None if under_xdist else getattr(session.config, "cache", None)
        self._key = f"{PREFIX}/durations/{kind}"
        self._seconds: dict[str, float] = {} if self._cache is None else self._cache.get(self._key, {})
        self._left = [item.nodeid for item in session.items if is_timed(item)]
        self._count = len(self._left)
        session.config.pluginmanager.register(self)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.nodeid in self._left:
            self._left.remove(report.nodeid)
            self._seconds[report.nodeid] = report.duration  # the time in which it waited for the machine is not in it

    def pytest_sessionfinish(self) -> None:
        if self._cache is not None:
            self._cache.set(self._key, self._seconds)

    def __str__(self) -> str:
        """Return "3 of 25, 0:41 so far, about 4:20 left", at the start of a test."""
        text = f"{self._count - len(self._left) + 1} of {self._count}, {clock(perf_counter() - self._began)} so far"
        if not self._seconds:
            return text
        usual = mean(self._seconds.values())
        return f"{text}, about {clock(sum(self._seconds.get(test, usual) for test in self._left))} left"


def is_timed(item: pytest.Item) -> bool:
    return "stele_measure" in getattr(item, "fixturenames", ()) and item.get_closest_marker("skip") is None


def clock(seconds: float) -> str:
    """Return seconds as ``minutes:seconds``."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Messages:
    """Prints the messages that processes of pytest-xdist send, as soon as they arrive."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if issubclass(warning_message.category, SteleMessage) and not hasattr(self._config, "workerinput"):
            reporter.ensure_newline()
            reporter.write_line(str(warning_message.message))
            reporter.flush()  # somebody waits, perhaps for an hour
