"""Show on a terminal how far something is, and how long it still takes. Elsewhere, a training writes a line per epoch.

One display is active at a time; a display inside of another one shows nothing. A display of something that is timed is
drawn only between launches, because a thread that draws would disturb them.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

active = False


@contextmanager
def display(*, redraw: bool) -> Iterator["Progress | None"]:
    """Yield a display on stderr, or None if nothing can be shown. With ``redraw``, it is drawn twice a second."""
    global active
    if active or not sys.stderr.isatty():
        yield None
        return
    from rich import progress  # imported here because it is slow to import
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=20),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left:"),
        progress.TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    active = True
    try:
        with progress.Progress(
            *columns, transient=True, auto_refresh=redraw, refresh_per_second=2, console=console
        ) as shown:
            yield shown
    finally:
        active = False


@contextmanager
def bar(title: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield a function that draws a progress report, ``{"phase": ..., "done": ..., "of": ...}``, on stderr.

    A report may also have ``loss``, ``accuracy`` (a fraction) and ``remaining`` (seconds), which stay until the next.
    """
    with display(redraw=True) as shown:
        if shown is None:
            yield lambda report: None if active else write_epoch(title, report)
            return
        task, latest = shown.add_task(title, total=None), ""

        def show(report: dict[str, Any]) -> None:
            nonlocal latest
            latest = details(report) or latest
            text = f"{title}: {report['phase']}{latest}"
            shown.update(task, description=text, completed=report["done"], total=report["of"])

        yield show


def write_epoch(title: str, report: dict[str, Any]) -> None:
    """Write a line if the report has a loss, as that after an epoch of a training."""
    if is_number(report.get("loss")):
        where = f"{report['done']} of {report['of']}{details(report)}"
        print(f"{title}: {where}", file=sys.stderr, flush=True)


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


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """Show that something runs whose end is unknown, and for how long."""
    with display(redraw=True) as shown:
        if shown is not None:
            shown.add_task(title, total=None)
        yield


@contextmanager
def counted(title: str, total: float) -> Iterator[Callable[[float], None]]:
    """Yield a function that draws how much of ``total`` is done. Nothing is drawn between its calls."""
    with display(redraw=False) as shown:
        if shown is None:
            yield lambda done: None
            return
        task = shown.add_task(title, total=total)
        shown.refresh()
        yield lambda done: shown.update(task, completed=min(done, total), refresh=True)
