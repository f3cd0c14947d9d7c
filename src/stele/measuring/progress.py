"""Show the progress of a worker: a live bar on a terminal, and nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def bar(title: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield a function that draws a progress report, ``{"phase": ..., "done": ..., "of": ...}``, on stderr."""
    if not sys.stderr.isatty():
        yield lambda report: None
        return
    from rich.console import Console  # imported here because it is slow to import
    from rich.progress import Progress

    with Progress(transient=True, refresh_per_second=2, console=Console(stderr=True)) as display:
        task = display.add_task(title, total=None)
        yield lambda report: display.update(
            task, description=f"{title}: {report['phase']}", completed=report["done"], total=report["of"]
        )
