"""Write files atomically."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write(path: Path, save: Callable[[IO[bytes]], object]) -> None:
    """Call ``save`` with a temporary file in the same folder, then rename it to ``path``.

    Until then, other processes read the old file. An interruption leaves only the old file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            save(file)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write text atomically, in UTF-8."""
    write(path, lambda file: file.write(text.encode()))
