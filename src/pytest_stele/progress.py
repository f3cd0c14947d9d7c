"""What a person sees while a worker computes: a live bar on a terminal, and a line for each result."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

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

        with self.past_capture(), bar(title) as show:
            yield show

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
        with self._uncaptured():
            if self._reporter is not None:
                self._reporter.ensure_newline()
            yield

    def _uncaptured(self) -> AbstractContextManager[None]:
        return nullcontext() if self._capture is None else self._capture.global_and_fixture_disabled()


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
