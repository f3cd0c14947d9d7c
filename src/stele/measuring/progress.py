"""Show the progress of a worker: a live bar on a terminal, and nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def bar(title: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield a function that draws a progress report, ``{"phase": ..., "done": ..., "of": ...}``, on stderr.

    A report may also have ``loss``, ``accuracy`` (a fraction) and ``remaining`` (seconds), which stay until the next.
    """
    if not sys.stderr.isatty():
        yield lambda report: None
        return
    from rich.console import Console  # imported here because it is slow to import
    from rich.progress import Progress

    with Progress(transient=True, refresh_per_second=2, console=Console(stderr=True)) as display:
        task, latest = display.add_task(title, total=None), ""

        def show(report: dict[str, Any]) -> None:
            nonlocal latest
            latest = details(report) or latest
            text = f"{title}: {report['phase']}{latest}"
            display.update(task, description=text, completed=report["done"], total=report["of"])

        yield show


def details(report: dict[str, Any]) -> str:
    """Return ``, loss 1.234, accuracy 56.7 %, 3.2 min left``, as far as a report has them."""
    parts = []
    if is_number(report.get("loss")):
        parts.append(f", loss {report['loss']:.3f}")
    if is_number(report.get("accuracy")):
        parts.append(f", accuracy {report['accuracy']:.1%}")
    if is_number(report.get("remaining")):
        parts.append(f", {report['remaining'] / 60:.1f} min left")
    return "".join(parts)


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
