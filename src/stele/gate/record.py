"""The record of a gate: a file of JSON lines. Each launch is on disk before the next one starts.

The first line says what is compared, and how. Each following line is a launch, {"key": [...], ...}; its key says which.
"""

import contextlib
import fcntl
import functools
import itertools
import operator
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from stele import files, schema
from stele.errors import SteleError
from stele.gate.entries import ENTRIES, OtherEntry
from stele.measuring import content
from stele.measuring.conditions import Conditions
from stele.measuring.content import NOTHING, Content, Reads
from stele.text import sentence

ADVICE = "Restore it, or run without --resume."
Entry = dict[str, Any]


class NotRecorded(SteleError):
    """A verdict needs a launch that a record does not have."""


class Lock:
    """Keeps other processes from writing a record, until it is closed or forgotten. ``flags`` are those of os.open.

    Raises SteleError, which names the other process, if one writes the record; and OSError.
    """

    def __init__(self, path: Path, flags: int = 0) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o666)
        self.close = weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SteleError(
                f"Another gate ({holder(descriptor)}) writes {path}. Wait until it has ended, or run without --resume."
            ) from None


def holder(descriptor: int) -> str:
    """Return ``process 123``: which process has locked a file, as far as the system says it."""
    node = f":{os.fstat(descriptor).st_ino}"
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="utf-8").splitlines():
            _, kind, _, _, process, file, *_ = line.split()
            if kind == "FLOCK" and file.endswith(node):
                return f"process {process}"
    return "an unknown process"


class Record:
    """A file of launches.

    ``check`` is called before each launch, and before what it gave is written, with what the launch has read. It raises
    SteleError if the launch does not belong to those before it, and returns what its model reads besides: the header in
    memory then has it, and the file has it in the key "content" of the launch.

    ``lock`` keeps other processes from writing. Only the first ``complete`` bytes of the file stay when something is
    written; None for all.
    """

    def __init__(
        self,
        path: Path,
        header: dict[str, Any],
        entries: list[Entry],
        *,
        lock: Lock | None = None,
        complete: int | None = None,
    ) -> None:
        self.path, self.header, self.complete = path, header, complete
        self.check: Callable[[Reads], Content] = lambda reads: {}
        self.lock = lock
        self._entries = {tuple(entry["key"]): entry for entry in entries}
        self.last_key = tuple(entries[-1]["key"]) if entries else None  # of the last line

    @property
    def spent(self) -> float:
        """The seconds that all launches took."""
        return sum(float(entry["took"]) for entry in self._entries.values())

    @property
    def launches(self) -> int:
        """The number of launches that gave a Run."""
        return sum(len(entry.get("runs") or {}) for entry in self._entries.values())

    def get(self, *key: str | int) -> Entry | None:
        return self._entries.get(key)

    def entries(self) -> list[Entry]:
        """Return all entries, in the order in which they were written."""
        return list(self._entries.values())

    def conditions(self) -> list[Conditions]:
        """Return the conditions of all passes."""
        return [entry["conditions"] for entry in self._entries.values() if entry.get("conditions")]

    def versions(self, arm: str) -> dict[str, str | None]:
        """Return the versions of an arm, from its first successful launch."""
        runs = ((entry.get("runs") or {}).get(arm) for entry in self._entries.values())
        return next((run.framework.versions for run in runs if run), {})

    def check_versions(self, arm: str, versions: dict[str, str | None]) -> None:
        """Raise SteleError if the versions of an arm changed during the measurement."""
        recorded = self.versions(arm)
        if recorded and recorded != versions:
            raise SteleError(
                f"{arm.upper()} was {recorded} in {self.path} and is now {versions}. Run without --resume."
            )

    def get_or_launch(self, *key: str | int, launch: Callable[[], Entry]) -> Entry:
        """Return the recorded entry; or call ``launch``, append what it returns, and return that."""
        if key not in self._entries:
            self.check(NOTHING)
            self.add({key: launch()})
        return self._entries[key]

    def add(self, entries: Mapping[tuple[str | int, ...], Entry]) -> None:
        """Append new entries, by their keys. What their launches have read is in their key "reads"."""
        content.look_again()
        reads = functools.reduce(operator.or_, (entry.get("reads", NOTHING) for entry in entries.values()), NOTHING)
        additions = self.check(reads)
        keyed = {
            key: {"key": key, **{name: value for name, value in entry.items() if name != "reads"}}
            for key, entry in entries.items()
        }
        if additions:
            keyed[next(iter(keyed))]["content"] = additions
        self.write(list(keyed.values()))
        self._entries.update(keyed)
        keep_content(self.header, keyed.values())

    def write(self, entries: list[Entry]) -> None:
        """Append entries to the file, in place of an incomplete last line."""
        if self.complete is not None:
            os.truncate(self.path, self.complete)
            self.complete = None
        files.append_text(self.path, "".join(schema.encode(entry) + "\n" for entry in entries))

    def close(self) -> None:
        """Let other processes write the record."""
        if self.lock is not None:
            self.lock.close()


def create(path: Path, header: dict[str, Any]) -> Record:
    """Start a record. A file that exists is not overwritten: the new one gets a number, ``gate-2.jsonl``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for candidate in numbered(path):
        with contextlib.suppress(FileExistsError):
            lock = Lock(candidate, os.O_CREAT | os.O_EXCL)
            break
    files.append_text(candidate, schema.encode(schema.wrap(header)) + "\n")
    return Record(candidate, header, [], lock=lock)


def keep_content(header: dict[str, Any], entries: Iterable[Entry]) -> None:
    """Add to the content of the header what entries have added to it."""
    additions = [entry["content"] for entry in entries if entry.get("content")]
    if additions:
        header["content"] = content.merged([header.get("content", {}), *additions])


def numbered(path: Path) -> Iterator[Path]:
    """Yield ``gate.jsonl``, ``gate-2.jsonl``, ``gate-3.jsonl`` and so on."""
    yield path
    for number in itertools.count(2):
        yield path.with_stem(f"{path.stem}-{number}")


def newest(path: Path) -> Path | None:
    """Return the last file that ``create`` made for a path; None if there is none."""
    paths = list(itertools.takewhile(Path.exists, numbered(path)))
    return paths[-1] if paths else None


def resume(path: Path) -> Record:
    """Return the record in a file, which changes when something is written: then an incomplete last line is replaced.

    Raises SteleError, which names the line, if the file is not a record, and if another process writes it.
    """
    try:
        lock, lines = Lock(path), read_lines(path)
        size = path.read_bytes().rfind(b"\n") + 1
    except OSError as error:
        raise SteleError(f"Cannot resume: {sentence(error)} Run without --resume.") from None
    complete = [line for line in lines if line.endswith("\n")]
    header, launches = parse(path, complete, advice=ADVICE)
    # a launch that failed is repeated: it may have run out of memory or time
    succeeded = [launch for launch in launches if launch.get("runs", ...) is not None and not launch.get("failure")]
    return Record(path, header, succeeded, lock=lock, complete=size)


def read(path: Path) -> Record:
    """Return the record in a file, which is only read. An incomplete last line is left out.

    Raises OSError if it cannot be read, and SteleError, which names the line, if it is not a record.
    """
    lines = [line for line in read_lines(path) if line.endswith("\n")]
    header, launches = parse(path, lines, advice="Leave it out, or measure again with: stele gate")
    return Record(path, header, launches)


def read_lines(path: Path) -> list[str]:
    return files.read_bytes(path).decode("utf-8", errors="replace").splitlines(keepends=True)


def parse(path: Path, lines: list[str], *, advice: str) -> tuple[dict[str, Any], list[Entry]]:
    """Return the header and the launches. Raises SteleError, which names the line and ends with the advice."""
    entries = [parse_line(path, number, line, advice) for number, line in enumerate(lines, 1)]
    try:
        header = schema.unwrap(entries[0] if entries else {})
    except ValueError as error:
        raise SteleError(f"{path} is not a gate's record: {error}. {advice}") from None
    if not isinstance(header.get("machine"), dict):
        raise SteleError(f"{path} is not a gate's record: it has no machine. {advice}")
    launches = [to_launch(path, number, entry, advice) for number, entry in enumerate(entries[1:], 2)]
    keep_content(header, launches)
    return header, launches


def parse_line(path: Path, number: int, line: str, advice: str) -> Entry:
    try:
        entry = schema.parse(line)
    except ValueError as error:
        raise SteleError(f"{path}, line {number}, is not JSON: {error}. {advice}") from None
    if not isinstance(entry, dict):
        raise SteleError(f"{path}, line {number}, is not a launch. {advice}")
    return entry


def to_launch(path: Path, number: int, entry: Entry, advice: str) -> Entry:
    """Return the entry of a line. Raises SteleError, which names the line, if it is not one."""
    try:
        line = schema.convert(entry, OtherEntry)
        name = str(line["key"][0]) if line["key"] else ""
        return {**entry, **schema.convert(entry, ENTRIES.get(name, OtherEntry))}
    except (SteleError, ValueError) as error:
        raise SteleError(f"{path}, line {number}, is not a launch: {error}. {advice}") from None
