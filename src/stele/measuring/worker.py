"""A Worker: a process of an Environment that answers newline-delimited JSON.

This module does not depend on the meaning of any verb.
"""

import contextlib
import hashlib
import itertools
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import stele_suite
import stele_worker
from stele import files, schema, temporary
from stele.data import cache
from stele.environments import Environment, builds, libraries, permissions
from stele.errors import SteleError
from stele.measuring import answers, logs, processors, space, strays
from stele.measuring.deadline import Deadline
from stele.measuring.settings import Settings
from stele.text import printable, printable_values, sentence, slug
from stele_worker import protocol

Answer = TypeVar("Answer")

TIMEOUT = 600.0  # seconds without a message; compiling a large network for a GPU takes minutes
MAX_TIMEOUT = threading.TIMEOUT_MAX  # about 292 years
EXIT_TIMEOUT = 5.0  # seconds that a worker has to exit after its input is closed
LONGEST_LINE = 64 * 2**20  # bytes; the longest valid answer is the durations of a long training
CHECK = 1.0  # seconds between two looks at the log of a worker that computes
# compilation caches of frameworks: each launch gets empty ones, so that its first step includes the compilation
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "NUMBA_CACHE_DIR")
NO_CACHE = {"JAX_ENABLE_COMPILATION_CACHE": "false"}

Progress = Callable[[answers.Progress], None]
Exchange = Generator[None, None, Any]  # yields at every pause, returns the result


_running: set["Worker"] = set()
_logs: set[Path] = set()  # of running workers
_naming = threading.Lock()


class WorkerError(SteleError):
    """A worker failed. The text includes the end of its log.

    ``kind`` and ``message`` are the type and the message of the error that the worker reported, else None.
    """

    def __init__(
        self,
        text: str,
        *,
        worker: "Worker | None" = None,
        kind: str | None = None,
        message: str | None = None,
    ) -> None:
        super().__init__(text)
        self.worker, self.kind, self.message = worker, kind, message


def launch(
    environment: Environment,
    settings: Settings,
    *,
    name: str | None = None,
    timeout: float = TIMEOUT,
    caches: Path | None = None,
    program: str | None = None,
) -> "Worker":
    """Start a Worker. Its log is in ``.stele/logs``, named after ``name`` or the environment.

    It runs a ``program`` of the user, one of ``stele_worker.programs``, or by default a framework.
    ``caches`` is the folder of the compilations of earlier launches, which it also fills; by default there are none.
    """
    log = Path(".stele/logs") / f"{slug(name) if name else environment.slug}.log"
    variables = {**settings.variables(), **(cache_variables(caches.absolute()) if caches else {})}
    if settings.device == "cuda" and not caches:
        variables["CUDA_CACHE_PATH"] = str(kernels_folder(environment))
    return Worker(environment, log=log, variables=variables, timeout=timeout, program=program)


def unused(log: Path) -> Path:
    """Return the path of a log that no running worker writes: this one, or with a number, ``parity-2.log``."""
    with _naming:
        numbered = (log.with_stem(f"{log.stem}-{number}") for number in itertools.count(2))
        path = next(path for path in itertools.chain([log], numbered) if path not in _logs)
        _logs.add(path)
    return path


def end_all() -> None:
    """End the processes of all workers; a thread that waits for an answer then gets WorkerError."""
    for running in tuple(_running):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)


def kernels_folder(environment: Environment) -> Path:
    """Return the folder of the kernels that CUDA compiles for this device, because a wheel does not contain them.

    It is kept, because that can take half an hour, longer than any timeout. Other packages have another folder.
    """
    lock = environment.lock
    content = lock.read_bytes() if lock is not None and lock.exists() else environment.name.encode()
    return cache.folder() / "cuda" / hashlib.sha256(content).hexdigest()[:16]


def cache_variables(folder: Path) -> dict[str, str]:
    """Return the variables with which frameworks keep their compilations in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    every = {
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    jax = {"JAX_ENABLE_COMPILATION_CACHE": "true", "JAX_COMPILATION_CACHE_DIR": str(folder / "jax"), **every}
    return {**{name: str(folder / name.lower()) for name in CACHES}, **jax}


def run_to_end(exchange: Generator[None, None, Answer]) -> Answer:
    """Resume ``exchange`` at every pause and return its result."""
    try:
        while True:
            next(exchange)
    except StopIteration as end:
        answer: Answer = end.value
        return answer


class Worker:
    """A process in which one framework runs. As a context manager, it always ends the process.

    ``environment`` defines the interpreter and its variables. ``log`` receives everything that the process prints.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        log: Path,
        variables: dict[str, str],
        timeout: float = TIMEOUT,
        program: str | None = None,
    ) -> None:
        self.environment, self.log, self.timeout, self.program = environment, unused(log), timeout, program
        self._requests, self._began = 0, perf_counter()
        self.waiting = 0.0  # seconds without a request: before and between requests, and at pauses
        self._answered = 0.0  # the age at the last answer
        self.start: float | None = None  # seconds from the first request to the first answer
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        # a folder that contains only the worker package, so that no other module shadows a library
        self._resources = contextlib.ExitStack()
        self._folder = self._resources.enter_context(temporary.folder())
        try:
            self._process = self._start(variables)
        except BaseException:
            _logs.discard(self.log)
            self._resources.close()
            raise
        _running.add(self)
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        """The id of the process, which is also that of its session."""
        return self._process.pid

    @property
    def age(self) -> float:
        """The seconds since the start of the process."""
        return perf_counter() - self._began

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close(graceful=False)  # all answers have arrived, and a graceful exit takes a second

    def ask(self, verb: str, *, progress: Progress | None = None, expected: type = dict, **fields: Any) -> Any:
        """Send a request and return its result, which is of the type ``expected``: a dict, or one of ``answers``.

        Raises WorkerError on an error, crash, timeout or invalid answer.
        """
        return run_to_end(self.exchange(verb, progress=progress, expected=expected, **fields))

    def exchange(
        self,
        verb: str,
        *,
        progress: Progress | None = None,
        expected: type = dict,
        **fields: Any,
    ) -> Exchange:
        """Send a request, yield at every pause of the worker, and return the result.

        The worker waits until the caller resumes the generator. Raises WorkerError as ``ask`` does.
        """
        self.waiting += self.age - self._answered
        self._requests += 1
        self._send(protocol.encode({"id": self._requests, "verb": verb, **fields}), verb)
        deadline = Deadline(self.timeout)
        while True:
            answer = self._answer(verb, deadline)
            if answer.progress is not None:
                deadline.heard(answer.progress.phase, answer.progress.done)
                if progress is not None:
                    progress(answer.progress)
            elif answer.pause is not None:
                deadline.heard("pause", answer.pause.done)
                paused = perf_counter()
                yield
                self.waiting += perf_counter() - paused
                self._send(protocol.encode({"id": self._requests, "go": True}), verb)
            elif answer.error is not None:
                error = answer.error
                # indented, so that no line of it looks like a line of a report
                message = error.message.replace("\n", "\n    ")
                what = f"failed during '{verb}': {error.type}: {message}"
                raise self._failure(what, kind=error.type, message=error.message)
            else:
                self._answered = self.age
                with self.checking(verb):
                    return schema.convert(answer.result, expected)

    @contextlib.contextmanager
    def checking(self, verb: str) -> Iterator[None]:
        """If the block refuses the answer with ValueError or SteleError, end the process and raise WorkerError."""
        try:
            yield
        except (ValueError, SteleError) as error:
            self.close(graceful=False)
            raise self._failure(f"sent an invalid answer during '{verb}': {error}") from None

    def end(self) -> int | None:
        """Close the input of the process, and return its exit status; None if it does not end in time."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            return self._process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            return None

    def close(self, *, graceful: bool = True) -> None:
        """End the process and all processes that it started. With ``graceful``, first give it time to exit."""
        started = strays.descendants(self._process.pid)  # now, because the children of a process that ended are unknown
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        if graceful:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(EXIT_TIMEOUT)
        if self._process.poll() is None:
            strays.end_below(self._process.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if remaining := strays.end(self._folder, started):
            numbers = ", ".join(map(str, remaining))
            line = f"'{self.environment.name}' left processes that cannot be ended now: {numbers}. They may disturb "
            print(printable(line + "what is measured next."), file=sys.stderr, flush=True)
        _running.discard(self)
        _logs.discard(self.log)
        self._resources.close()

    def _start(self, variables: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start the process.

        Raises WorkerError if its program cannot be started, SteleError if other users can replace it, and OSError if
        the disk is full.
        """
        for package in (stele_worker, stele_suite):
            (self._folder / package.__name__).symlink_to(package.__path__[0], target_is_directory=True)
        command = [*builds.command(self.environment), *([f"--program={self.program}"] if self.program else [])]
        self._program = command[0]
        for program in (*builds.command(self.environment), "stele_worker/__init__.py", "stele_suite/__init__.py"):
            permissions.check(program, self._folder)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)  # it may be a link
        with self.log.open("xb") as output:
            try:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=output,
                    cwd=self._folder,
                    env=libraries.clean_variables(
                        {**builds.variables(self.environment), **self._folder_variables(), **variables}
                    ),
                    start_new_session=True,  # only the host receives Ctrl-C; it then ends the process group
                )
            except UnicodeEncodeError as error:  # the locale's, so it says nothing about the framework
                raise SteleError(
                    f"Worker '{self.environment.name}' did not start: {files.describe_encoding(error)}"
                ) from None
            except (OSError, ValueError) as error:  # ValueError: a variable contains a null character
                self._require_program()
                raise WorkerError(f"Worker '{self.environment.name}' did not start: {sentence(error)}") from None

    def _require_program(self) -> None:
        """Raise SteleError if the program of the worker has gone, such as that of an environment that was moved."""
        if not files.is_file(self._folder / self._program) and shutil.which(self._program) is None:
            raise SteleError(
                f"'{self.environment.name}' cannot be measured: its interpreter {self._program} no longer exists. "
                "Restore it. What was measured until now is kept; stele gate continues with --resume."
            )

    def _folder_variables(self) -> dict[str, str]:
        """Return the variables that refer to the folder of the worker.

        What a model leaves in the folder for temporary files is then deleted, too. It is on the same file system.
        """
        caches = {name: str(self._folder / name.lower()) for name in CACHES}
        folders = {"TMPDIR": str(temporary.inside(self._folder))}
        return {**caches, **NO_CACHE, **folders, "PYTHONPATH": str(self._folder)}

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

    def _answer(self, verb: str, deadline: Deadline) -> answers.Message:
        """Return the next message. Raises WorkerError, with a distinct text for each cause, if there is none."""
        line = self._next_line(verb, deadline)
        if not line:
            raise self._failure(f"crashed during '{verb}': {self._ending()}")
        if self.start is None:
            self.start = self.age - self.waiting
        with self.checking(verb):
            return self._message(line)

    def _next_line(self, verb: str, deadline: Deadline) -> bytes:
        """Return the next line of the process; empty if it has ended. Ends one that hangs, or prints too much."""
        while deadline.left():
            if logs.size(self.log) > logs.LARGEST:
                self.close(graceful=False)
                logs.shorten(self.log)
                raise self._failure(f"printed more than {logs.LARGEST / 2**30:g} GiB during '{verb}' and was stopped")
            with contextlib.suppress(queue.Empty), deadline.waiting():
                return self._lines.get(timeout=min(CHECK, deadline.left()))
            deadline.excuse(processors.usage(self.pid))
        self.close(graceful=False)
        raise self._failure(
            f"{deadline.reason()} during '{verb}' and was stopped. If the machine is slow, increase --worker-timeout"
        )

    def _message(self, line: bytes) -> answers.Message:
        """Return the message in a line. Raises ValueError, with the line, if it does not answer the last request."""
        try:
            message = schema.convert(printable_values(protocol.decode(line)), answers.Message)
            if message.id != self._requests or message.is_empty:
                raise ValueError("it is no answer to this request")
        except ValueError as error:
            raise ValueError(f"{line[:80]!r} ({error})") from None
        return message

    def _ending(self) -> str:
        """Return how the process ended, as text."""
        try:
            status = self._process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        if status >= 0:
            return f"it exited with status {status}"
        name = signal.Signals(-status).name
        return f"killed by {name}" + (", perhaps by the kernel because memory ran out" if name == "SIGKILL" else "")

    def _failure(self, what: str, *, kind: str | None = None, message: str | None = None) -> Exception:
        """Return the WorkerError of a failure; another error if it says nothing about the framework.

        That is a fault of the machine, an environment that was removed, a SetupError of the worker, or a mistake of
        Stele, which is no SteleError.
        """
        self._require_program()
        if kind == protocol.InternalError.__name__:
            return RuntimeError(f"Worker '{self.environment.name}' {what}")
        if kind == protocol.SetupError.__name__:
            return SteleError(f"'{self.environment.name}' cannot be measured: {message}")
        lines = logs.last_lines(self.log)
        full = space.full_disk((self._folder, self.log.parent), lines if message is None else message.splitlines())
        removed = files.removed_folder()
        if removed is not None:
            return SteleError(f"Worker '{self.environment.name}' {what}. {files.describe_removed(removed)}")
        if full is not None:
            return SteleError(
                f"Worker '{self.environment.name}' {what}, and {full} is full. What was measured until now "
                "is kept. Free some space, then run the command again; stele gate continues with --resume."
            )
        tail = "\n    ".join([f"\n  Log {self.log}:", *lines]) if lines else ""
        text = f"Worker '{self.environment.name}' {sentence(what)}{tail}"
        return WorkerError(text, worker=self, kind=kind, message=message)
