"""Files from the network: resumed where a download stopped, verified before they get their name."""

import contextlib
import hashlib
import http.client
import os
import queue
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from stele.data.errors import DataUnavailable

TIMEOUT = 6.0  # seconds until a server has answered, name look-up included
SILENCE = 30.0  # seconds without a byte until a download counts as cut
LARGEST = 2**30  # bytes
CHUNK = 2**18  # bytes


def fetch(url: str, sha256: str, target: Path) -> Path:
    """``target``, downloaded from ``url`` unless it is there already.

    A cut download stays as ``target``.part and is resumed by the next call. DataUnavailable when
    STELE_OFFLINE is set, the server cannot be reached or refuses, or sends other bytes than the
    published ones.
    """
    if os.environ.get("STELE_OFFLINE", "0") not in ("", "0"):
        raise DataUnavailable("STELE_OFFLINE is set, so nothing is downloaded")
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target.with_name(target.name + ".lock")):
        if not target.exists():  # it may have come while we waited
            part = target.with_name(target.name + ".part")
            _continue(url, part)
            _verify(url, part, sha256)
            part.replace(target)
    return target


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def _verify(url: str, part: Path, sha256: str) -> None:
    found = sha256_of(part)
    if found != sha256:
        part.unlink()
        raise DataUnavailable(
            f"{url} sent other bytes than the published ones "
            f"(SHA-256 {found[:12]}… instead of {sha256[:12]}…), which were deleted"
        )


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time; the lock of a process that died is free again."""
    with lock.open("a") as file:
        # Without flock (Windows, some network disks) two downloads may spoil each other's part;
        # SHA-256 then refuses it, and the next call starts afresh.
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _continue(url: str, part: Path) -> None:
    """Append to ``part`` what is missing, or write it anew if the server cannot resume."""
    have = part.stat().st_size if part.exists() else 0
    try:
        response = _answer(url, have)
        with response, part.open("ab" if response.status == 206 else "wb") as file:
            _copy(response, file, file.tell(), url)
    except urllib.error.HTTPError as problem:
        problem.close()
        if problem.code != 416:  # 416: there is nothing after what we have; let SHA-256 judge it
            raise DataUnavailable(f"{url} answered {problem.code} {problem.reason}") from None
    except urllib.error.URLError as problem:
        raise DataUnavailable(f"{url} cannot be reached ({problem.reason})") from None
    except (OSError, http.client.HTTPException) as problem:
        raise DataUnavailable(f"{url} stopped sending ({problem})") from None


def _answer(url: str, have: int) -> Any:
    """The response to a request for everything from byte ``have`` on.

    Asked in a thread, because no timeout of the standard library covers the look-up of a name.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "stele"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    box: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            box.put(urllib.request.urlopen(request, timeout=SILENCE))
        except Exception as problem:
            box.put(problem)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = box.get(timeout=TIMEOUT)
    except queue.Empty:
        raise urllib.error.URLError(f"no answer within {TIMEOUT:g} s") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _copy(response: Any, file: Any, have: int, url: str) -> None:
    left = response.headers.get("Content-Length")
    total = have + int(left) if left else None
    with _progress(url.rsplit("/", 1)[-1], have, total) as show:
        while block := response.read1(CHUNK):
            file.write(block)
            have += len(block)
            show(have)
            if have > LARGEST:
                raise DataUnavailable(f"{url} sends more than {LARGEST:,} bytes")
    if total is not None and have < total:
        raise DataUnavailable(f"{url} stopped at {have:,} of {total:,} bytes; run again to resume")


@contextlib.contextmanager
def _progress(label: str, have: int, total: int | None) -> Iterator[Callable[[int], None]]:
    """A function to call with the bytes so far: a bar on a terminal, else a few plain lines."""
    if not sys.stderr.isatty():
        yield _lines(label, have, total)
        return
    import rich.console  # here, so that importing stele stays quick
    import rich.progress

    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.DownloadColumn(),
        rich.progress.TransferSpeedColumn(),
        rich.progress.TimeRemainingColumn(),
    )
    with rich.progress.Progress(*columns, console=rich.console.Console(stderr=True)) as bar:
        task = bar.add_task(label, completed=have, total=total)
        yield lambda done: bar.update(task, completed=done)


def _lines(label: str, have: int, total: int | None) -> Callable[[int], None]:
    """A line for each tenth, or each 16 MB where the total is unknown."""
    step = max((total or 160_000_000) // 10, 1)
    last = have // step

    def show(done: int) -> None:
        nonlocal last
        if done // step > last:
            last = done // step
            of = f" of {total / 1e6:.1f}" if total else ""
            print(f"{label}  {done / 1e6:.1f}{of} MB", file=sys.stderr, flush=True)

    return show
