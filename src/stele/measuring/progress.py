"""Show on a terminal how far something is, and how long it still takes. Elsewhere, a training writes a line per epoch.

One display is active at a time; a display inside of another one shows nothing. A display of something that is timed is
drawn only between launches, because a thread that draws would disturb them.
"""

import math
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stele import text
from stele.measuring import answers

if TYPE_CHECKING:
    from rich.progress import Progress

active = False
replaceable = "", 0  # the part whose last lines on the terminal are replaced by its next ones, and their number


def say(line: str) -> None:
    """Print a line on stderr: a message of something that runs."""
    global replaceable
    replaceable = "", 0
    print(line, file=sys.stderr, flush=True)


def part(name: str, value: str, *, runs: bool = False) -> None:
    """Print the name of a part of a command, and what is known of it, on stderr.

    In a terminal, the next line of the part replaces this one if the part still ``runs``.
    """
    global replaceable
    columns = shutil.get_terminal_size().columns
    lines = text.labelled(name, value, columns)
    drawn, rows = replaceable
    upwards = f"\x1b[{rows}F\x1b[J" if drawn == name else ""
    say(upwards + "\n".join(lines))
    if runs and sys.stderr.isatty() and not active:
        replaceable = name, sum(math.ceil(len(line) / columns) for line in lines)


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
def bar(title: str) -> Iterator[Callable[[answers.Progress], None]]:
    """Yield a function that draws a progress report on stderr. Its loss and accuracy stay until the next."""
    with display(redraw=True) as shown:
        if shown is None:
            yield lambda report: None if active else write_epoch(title, report)
            return
        task, latest = shown.add_task(title, total=None), ""

        def show(report: answers.Progress) -> None:
            nonlocal latest
            latest = details(report) or latest
            text = f"{title}: {report.phase}{latest}"
            shown.update(task, description=text, completed=report.done, total=report.of)

        yield show


def write_epoch(title: str, report: answers.Progress) -> None:
    """Write a line if the report has a loss, as that after an epoch of a training."""
    if report.loss is not None:
        where = f"{report.done} of {report.of}{details(report)}"
        print(f"{title}: {where}", file=sys.stderr, flush=True)


def details(report: answers.Progress) -> str:
    """Return ``, loss 1.234, accuracy 56.7 %, 3.2 min left``, as far as a report has them."""
    parts = []
    if report.loss is not None:
        parts.append(f", loss {report.loss:.3f}")
    if report.accuracy is not None:
        parts.append(f", accuracy {report.accuracy:.1%}")
    if report.remaining is not None:
        parts.append(f", {report.remaining / 60:.1f} min left")
    return "".join(parts)


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
