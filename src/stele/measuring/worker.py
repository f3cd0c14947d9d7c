"""A Worker: a live process of an Environment that answers newline-delimited JSON. Knows no verb's meaning."""

import contextlib
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

import stele_worker
from stele.environments import Environment, builds, libraries
from stele.environments.description import slug
from stele.errors import SteleError
from stele.measuring.settings import Settings
from stele_worker import protocol

Answer = TypeVar("Answer")

TIMEOUT = 600.0  # seconds without a sign of life; compiling a large network for a GPU takes minutes
FAREWELL = 5.0  # seconds to end after a goodbye
LONGEST_LINE = 64 * 2**20  # bytes; the longest honest answer is a long training's durations
TAIL = 20  # lines of the log that an error shows
# where frameworks keep what they compiled: a launch compiles for itself, so that its first step says what that takes
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "NUMBA_CACHE_DIR")
NO_CACHE = {"JAX_ENABLE_COMPILATION_CACHE": "false"}

Progress = Callable[[dict[str, Any]], None]
Answering = Generator[int, None, dict[str, Any]]  # yields at every pause, returns the result
KINDS = {"progress", "pause", "error", "result"}


class WorkerError(SteleError):
    """A worker that failed, with the end of its log; ``kind`` and ``said`` are its own error's, if it answered one."""

    def __init__(
        self,
        message: str,
        *,
        worker: "Worker | None" = None,
        kind: str | None = None,
        said: str | None = None,
    ) -> None:
        super().__init__(message)
        self.worker, self.kind, self.said = worker, kind, said


def live(
    environment: Environment, settings: Settings, *, name: str | None = None, timeout: float = TIMEOUT
) -> "Worker":
    """A fresh Worker, its log under ``.stele/logs`` here, called as it is or as it should be."""
    log = Path(".stele/logs") / f"{slug(name) if name else environment.slug}.log"
    return Worker(environment, log=log, variables=settings.variables(), timeout=timeout)


def finished(answering: Generator[int, None, Answer]) -> Answer:
    """What it returns, its pauses gone over."""
    try:
        while True:
            next(answering)
    except StopIteration as end:
        answer: Answer = end.value
        return answer


class Worker:
    """A process in which one framework runs; a context manager, so that it ends in every case.

    ``environment`` says which interpreter and variables, ``log`` where its prints go.
    """

    def __init__(
        self, environment: Environment, *, log: Path, variables: dict[str, str], timeout: float = TIMEOUT
    ) -> None:
        self.environment, self.log, self.timeout = environment, log, timeout
        self._requests = 0
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        # a folder that holds the worker package and nothing else, so that no neighbour shadows a library
        self._folder = tempfile.TemporaryDirectory(prefix="stele-")
        package = Path(stele_worker.__file__).parent
        (Path(self._folder.name) / "stele_worker").symlink_to(package, target_is_directory=True)
        log.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._process = self._start(variables)
        except OSError as error:
            self._folder.cleanup()
            raise WorkerError(f"Worker '{environment.name}' did not start: {error}.") from None
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close(patiently=False)  # its answers have arrived; a goodbye takes a second and tells nothing

    def ask(self, verb: str, *, progress: Progress | None = None, **fields: Any) -> dict[str, Any]:
        """Send a request and return its result. Raises WorkerError on an error, a crash, a hang or garbage."""
        return finished(self.answering(verb, progress=progress, **fields))

    def answering(
        self, verb: str, *, progress: Progress | None = None, early: bool = False, **fields: Any
    ) -> Answering:
        """As ``ask``, step by step: yields where the worker pauses, which then waits until it is gone on with; and if
        ``early``, as soon as it was asked."""
        self._requests += 1
        self._send(protocol.encode({"id": self._requests, "verb": verb, **fields}), verb)
        if early:
            yield 0
        while True:
            answer = self._answer(verb)
            if "progress" in answer:
                if progress is not None:
                    progress(answer["progress"])
            elif "pause" in answer:
                yield answer["pause"]["done"]
                self._send(protocol.encode({"id": self._requests, "go": True}), verb)
            elif "error" in answer:
                error = answer["error"]
                what = f"failed during '{verb}': {error['type']}: {error['message']}"
                raise self._failure(what, kind=error["type"], said=error["message"])
            else:
                result: dict[str, Any] = answer["result"]
                return result

    def close(self, *, patiently: bool = True) -> None:
        """End the process and all that it started; wait for a goodbye only if ``patiently``."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        if patiently:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(FAREWELL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

    def _start(self, variables: dict[str, str]) -> subprocess.Popen[bytes]:
        with self.log.open("wb") as log:
            return subprocess.Popen(
                builds.command(self.environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder.name,
                env=libraries.clean({**builds.variables(self.environment), **variables, **self._own()}),
                start_new_session=True,  # Ctrl-C reaches the host alone, which then ends the whole group
            )

    def _own(self) -> dict[str, str]:
        """Variables that lead into the worker's own folder."""
        caches = {name: str(Path(self._folder.name) / name.lower()) for name in CACHES}
        return {**caches, **NO_CACHE, "PYTHONPATH": self._folder.name}

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            while line := answers.readline(LONGEST_LINE):
                self._lines.put(line)
        self._lines.put(b"")

    def _send(self, line: str, verb: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._failure(f"crashed before '{verb}': {self._ending()}") from None

    def _answer(self, verb: str) -> dict[str, Any]:
        """The next message; every way to have none is a message of its own."""
        try:
            line = self._lines.get(timeout=self.timeout)
        except queue.Empty:
            self.close(patiently=False)
            raise self._failure(
                f"gave no sign of life for {self.timeout:g} s during '{verb}' and was stopped. "
                "If the machine is only slow, raise --worker-timeout"
            ) from None
        if not line:
            raise self._failure(f"crashed during '{verb}': {self._ending()}")
        try:
            message = protocol.decode(line.decode())
            if message.get("id") != self._requests or not KINDS & set(message):
                raise ValueError("not an answer to this request")
        except ValueError:
            self.close(patiently=False)
            raise self._failure(f"answered garbage during '{verb}': {line[:80]!r}") from None
        return message

    def _ending(self) -> str:
        """How the process ended, in words."""
        try:
            status = self._process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        if status >= 0:
            return f"it ended with status {status}"
        name = signal.Signals(-status).name
        return f"killed by {name}" + (
            ", as the kernel does when memory runs out" if name == "SIGKILL" else ""
        )

    def _failure(self, what: str, *, kind: str | None = None, said: str | None = None) -> WorkerError:
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL:] if self.log.exists() else []
        tail = "".join(f"\n    {line}" for line in lines)
        message = f"Worker '{self.environment.name}' {what}.\n  Log {self.log}:{tail or ' empty'}"
        return WorkerError(message, worker=self, kind=kind, said=said)
