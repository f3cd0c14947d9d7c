"""What a person sees while a worker computes: a live bar on a terminal, nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def bar(title: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function for what a worker reports, ``{"phase": …, "done": …, "of": …}``; it draws on stderr."""
    if not sys.stderr.isatty():
        yield lambda report: None
        return
    from rich.console import Console  # a moment to import: only where somebody watches
    from rich.progress import Progress

    with Progress(transient=True, refresh_per_second=2, console=Console(stderr=True)) as drawn:
        row = drawn.add_task(title, total=None)
        yield lambda report: drawn.update(
            row, description=f"{title}: {report['phase']}", completed=report["done"], total=report["of"]
        )
