"""Files that appear under their name only when they are whole."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write(path: Path, save: Callable[[IO[bytes]], object]) -> None:
    """``save`` writes a temporary file beside ``path``, which then takes its place.

    Whoever reads meanwhile sees the old file; an interruption leaves it, and nothing else.
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
    """``write`` for text, in UTF-8."""
    write(path, lambda file: file.write(text.encode()))
