"""What a gate has measured, launch by launch, on disk before the next one starts: a file of JSON lines.

The first line says what is compared and how. Each other is a launch, {"key": [...], ...}, under a key that says which.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stele import files, schema
from stele.errors import SteleError

FORMATS = (2,)  # of files from before the schema number
Entry = dict[str, Any]


class Record:
    """An open file of launches. ``spent`` is how long they took, in seconds."""

    def __init__(self, path: Path, header: dict[str, Any], entries: list[Entry]) -> None:
        self.path, self.header = path, header
        self._entries = {tuple(entry["key"]): entry for entry in entries}

    @property
    def spent(self) -> float:
        return sum(float(entry["took"]) for entry in self._entries.values())

    @property
    def launches(self) -> int:
        """How many gave a Run."""
        return sum(len(entry.get("runs") or {}) for entry in self._entries.values())

    def get(self, *key: str | int) -> Entry | None:
        return self._entries.get(key)

    def versions(self, arm: str) -> dict[str, str | None]:
        """Of what an arm consisted, by its first launch that gave a Run."""
        runs = ((entry.get("runs") or {}).get(arm) for entry in self._entries.values())
        return next((run["versions"] for run in runs if run), {})

    def refuse_another_release(self, arm: str, versions: dict[str, str | None]) -> None:
        """Raises SteleError if an arm became another while it was measured."""
        known = self.versions(arm)
        if known and known != versions:
            raise SteleError(f"{arm.upper()} was {known} in {self.path}, and is {versions} now. Begin anew.")

    def once(self, *key: str | int, launch: Callable[[], Entry]) -> Entry:
        """What ``launch`` gives, written down; or what it gave before."""
        if key not in self._entries:
            entry = {"key": key, **launch()}
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
            self._entries[key] = entry
        return self._entries[key]


def new(path: Path, header: dict[str, Any]) -> Record:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(schema.stamped(header)) + "\n", encoding="utf-8")
    return Record(path, header, [])


def resume(path: Path) -> Record:
    """The record as far as it goes: a line that was cut off while it was written is dropped, and measured again.

    Raises SteleError, naming the line, if it is no record.
    """
    try:
        lines = path.read_bytes().decode("utf-8", errors="replace").splitlines(keepends=True)
    except OSError as error:
        raise SteleError(f"Nothing to resume: {error}.") from None
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        files.write_text(path, "".join(lines))
    found = [parsed(path, number, line) for number, line in enumerate(lines, 1)]
    try:
        header = schema.unwrapped(found[0] if found else {}, formats=FORMATS)
    except ValueError as error:
        raise SteleError(f"{path} is not a gate's record: {error}.") from None
    if "machine" not in header or not all("key" in entry and "took" in entry for entry in found[1:]):
        raise SteleError(f"{path} contains lines that are not launches. Restore it, or run without --resume.")
    # a launch that failed may succeed now: it may have run out of memory or time
    entries = [schema.gate_entry(entry) for entry in found[1:] if entry.get("runs", ...) is not None]
    return Record(path, header, entries)


def parsed(path: Path, number: int, line: str) -> Entry:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise SteleError(f"{path}, line {number}, is not JSON: {error}. Restore it, or begin anew.") from None
    if not isinstance(entry, dict):
        raise SteleError(f"{path}, line {number}, is no launch: restore it, or begin anew.")
    return entry
