"""Download files: resume incomplete downloads, and verify the hash before the file gets its name."""

import contextlib
import hashlib
import http.client
import queue
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import filelock

from stele.errors import DataUnavailable

TIMEOUT = 6.0  # seconds until the server answers, including the DNS look-up
READ_TIMEOUT = 30.0  # seconds without a byte
LARGEST = 2**30  # bytes
CHUNK = 2**18  # bytes


def fetch(url: str, sha256: str, target: Path) -> Path:
    """Download ``url`` to ``target`` unless it exists, and return ``target``.

    An incomplete download stays as ``target``.part, and the next call resumes it. Raises DataUnavailable if the server
    cannot be reached or refuses, or if the hash differs from the published one.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(target.with_name(target.name + ".lock")):
        if not target.exists():  # another process may have downloaded it while this one waited
            part = target.with_name(target.name + ".part")
            _resume(url, part)
            _verify(url, part, sha256)
            part.replace(target)
    return target


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def _verify(url: str, part: Path, sha256: str) -> None:
    actual = sha256_of(part)
    if actual != sha256:
        part.unlink()
        raise DataUnavailable(
            f"{url} sent a file that differs from the published one "
            f"(SHA-256 {actual[:12]}..., expected {sha256[:12]}...); it was deleted"
        )


def _resume(url: str, part: Path) -> None:
    """Append the missing bytes to ``part``, or write it from the beginning if the server cannot resume."""
    size = part.stat().st_size if part.exists() else 0
    try:
        response = _open(url, size)
        with response, part.open("ab" if response.status == 206 else "wb") as file:
            _copy(response, file, file.tell(), url)
    except urllib.error.HTTPError as problem:
        problem.close()
        if problem.code != 416:  # 416: the part has all bytes already; the hash is checked next
            raise DataUnavailable(f"{url} answered {problem.code} {problem.reason}") from None
    except urllib.error.URLError as problem:
        raise DataUnavailable(f"{url} cannot be reached ({problem.reason})") from None
    except (OSError, http.client.HTTPException) as problem:
        raise DataUnavailable(f"the download of {url} stopped ({problem})") from None


def _open(url: str, start: int) -> Any:
    """Return the response to a request for all bytes from ``start`` on.

    The request runs in a thread, because no timeout of the standard library covers the DNS look-up.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "stele"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    results: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            results.put(urllib.request.urlopen(request, timeout=READ_TIMEOUT))
        except Exception as problem:
            results.put(problem)

    threading.Thread(target=ask, daemon=True).start()
    try:
        result = results.get(timeout=TIMEOUT)
    except queue.Empty:
        raise urllib.error.URLError(f"no answer within {TIMEOUT:g} s") from None
    if isinstance(result, Exception):
        raise result
    return result


def _copy(response: Any, file: Any, size: int, url: str) -> None:
    """Copy a response to a file that already has ``size`` bytes."""
    rest = response.headers.get("Content-Length")
    total = size + int(rest) if rest else None
    with _progress(url.rsplit("/", 1)[-1], size, total) as show:
        while block := response.read1(CHUNK):
            file.write(block)
            size += len(block)
            show(size)
            if size > LARGEST:
                raise DataUnavailable(f"{url} sends more than {LARGEST:,} bytes")
    if total is not None and size < total:
        raise DataUnavailable(f"{url} stopped at {size:,} of {total:,} bytes; run again to resume")


@contextlib.contextmanager
def _progress(label: str, size: int, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the bytes so far: it draws a bar on a terminal, or prints a few lines elsewhere."""
    if not sys.stderr.isatty():
        yield _line_printer(label, size, total)
        return
    import rich.console  # imported here, so that importing stele stays fast
    import rich.progress

    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.DownloadColumn(),
        rich.progress.TransferSpeedColumn(),
        rich.progress.TimeRemainingColumn(),
    )
    with rich.progress.Progress(*columns, console=rich.console.Console(stderr=True)) as bar:
        task = bar.add_task(label, completed=size, total=total)
        yield lambda done: bar.update(task, completed=done)


def _line_printer(label: str, size: int, total: int | None) -> Callable[[int], None]:
    """Return a function that prints a line for each tenth, or for each 16 MB if the total is unknown."""
    step = max((total or 160_000_000) // 10, 1)
    last = size // step

    def show(done: int) -> None:
        nonlocal last
        if done // step > last:
            last = done // step
            of = f" of {total / 1e6:.1f}" if total else ""
            print(f"{label}  {done / 1e6:.1f}{of} MB", file=sys.stderr, flush=True)

    return show
