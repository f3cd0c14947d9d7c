"""The cells as a Slurm job array, with submitit: one job for each launch, on a node of its own choice.

The nodes share the file system with the machine of the command. Slurm places and repeats jobs. Source: the manuals of
submitit and of ``sbatch``.
"""

import contextlib
import platform
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from stele.errors import SteleError
from stele.fleet.work import CPU, FAILED, Function, Needs, Node, Reply, Request, Started, Work, attempt

ABSENT = "submitit is not installed. Run: pip install 'pytest-stele[fleet]'"
NO_SLURM = "Slurm is not installed on this machine: there is no sbatch. Run this command on a login node."
MINUTES = 24 * 60  # most of a job
POLL = 0.5  # seconds
SUBMITTED = "_submitted.pkl"  # after the number of a job, in the file that submitit writes for it


class JobArray:
    """A job array, as ``stele.fleet.dispatch.Engine``."""

    def __init__(self, executor: Any, function: Function) -> None:
        self.executor, self.function = executor, function
        self.jobs: dict[Any, Work] = {}  # that have not ended
        self.running: set[Any] = set()  # those that have started

    def nodes(self) -> None:
        """Return nothing: only Slurm knows its nodes."""

    def submit(self, works: Sequence[Work], avoided: Collection[str]) -> list[Any]:
        """Submit the works with the same needs as one array. Slurm gets the names of nodes to avoid."""
        jobs: dict[str, Any] = {}
        for needs in dict.fromkeys(work.needs for work in works):
            group = [work for work in works if work.needs == needs]
            self.executor.update_parameters(**parameters(needs, avoided))
            with self.executor.batch():
                for work in group:
                    jobs[work.key] = self.executor.submit(execute, self.function, work.request)
        self.jobs.update({jobs[work.key]: work for work in works})
        return [jobs[work.key] for work in works]

    def wait(self, handles: Sequence[Any], seconds: float) -> list[Any]:
        until = time.monotonic() + seconds
        while not (ended := [job for job in handles if job.done()]) and time.monotonic() < until:
            time.sleep(POLL)
        return ended

    def answer(self, handle: Any) -> Reply:
        self.jobs.pop(handle, None)
        try:
            answer: Reply = handle.result()
            return answer
        except Exception as error:  # submitit's, for a job that was killed or cancelled
            reason = f"its job ended without a result ({type(error).__name__}). See {handle.paths.stderr}."
            return Reply(FAILED, message=reason)

    def started(self) -> list[Started]:
        """Return the jobs that run, each once."""
        new = [job for job in self.jobs if job not in self.running and job.state == "RUNNING"]
        self.running.update(new)
        return [
            Started(self.jobs[job].key, job.get_info().get("NodeList") or platform.node(), time.time()) for job in new
        ]

    def cancel(self, handle: Any) -> None:
        self.jobs.pop(handle, None)
        handle.cancel()

    def close(self) -> None:
        """Cancel what still waits or runs."""
        for job in list(self.jobs):
            job.cancel()


def cancel_earlier(folder: Path) -> None:
    """Cancel the jobs that a killed command left in ``folder``: what they would measure is submitted again."""
    jobs = {path.name.removesuffix(SUBMITTED) for path in folder.glob(f"*{SUBMITTED}")}
    ended = {path.name.removesuffix("_0_result.pkl") for path in folder.glob("*_0_result.pkl")}
    if left := sorted(jobs - ended):
        # Slurm says of jobs that have ended that it does not know them
        subprocess.run(["scancel", *left], check=False, stderr=subprocess.DEVNULL)


def execute(function: Function, request: Request) -> Reply:
    """Do work in a job."""
    name = platform.node()
    return attempt(Node(name, name, ()), lambda: function(request))


def parameters(needs: Needs, avoided: Collection[str]) -> dict[str, Any]:
    """Return submitit's parameters for jobs: a whole node, or a GPU; ``type`` is a feature of Slurm's nodes."""
    more: dict[str, Any] = {"exclude": ",".join(sorted(avoided))} if avoided else {}
    if needs.device == CPU:
        more["exclusive"] = True
        if needs.type:
            more["constraint"] = needs.type
    else:
        more["gres"] = f"gpu:{needs.type}:1" if needs.type else "gpu:1"
    return {"timeout_min": MINUTES, **{f"slurm_{name}": value for name, value in more.items()}}


@contextlib.contextmanager
def submitted(folder: Path, function: Function, partition: str | None, *, cluster: str = "slurm") -> Iterator[JobArray]:
    """Yield a job array whose files are in ``folder``; it is cancelled if the block ends early.

    ``cluster`` "local" runs the jobs as processes of this machine. Raises SteleError without submitit or Slurm.
    """
    try:
        import submitit
    except ModuleNotFoundError:
        raise SteleError(ABSENT) from None
    if cluster == "slurm" and shutil.which("sbatch") is None:
        raise SteleError(NO_SLURM)
    executor = submitit.AutoExecutor(folder=str(folder.absolute()), cluster=cluster)
    if partition:
        executor.update_parameters(slurm_partition=partition)
    if cluster == "slurm":
        cancel_earlier(folder)
    array = JobArray(executor, function)
    try:
        yield array
    finally:
        array.close()
