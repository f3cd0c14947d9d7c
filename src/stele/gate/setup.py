"""What both arms run on, as their workers report it before anything is measured, and what Stele changes to measure."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from stele.gate.metrics import SHORT
from stele.gate.trial import Trial
from stele.measuring import measure, progress, variables, worker
from stele.measuring.run import Framework
from stele.measuring.settings import THREADS
from stele.text import or_none, printable

ALLOCATORS = {"mmap": "returns freed memory at once", "steady": "keeps freed memory"}
# flags that have another place in the line, or that say nothing about the framework
ELSEWHERE = ("device", "threads", "interop_threads", "processors", "python", "numpy")


def probe(trial: Trial) -> tuple[Framework, Framework]:
    """Return what ``configure`` answers in OLD and in NEW. Raises WorkerError if one does not start."""
    request = trial.subject.as_request()

    def ask(arm: str) -> Framework:
        program = (request or {}).get("program")
        launched = worker.launch(
            trial.arm(arm), trial.settings, name=f"setup-{arm}", timeout=trial.timeout, program=program
        )
        with launched as live:
            return measure.configure(live, trial.settings, model=request)

    with progress.waiting("starting both arms"), ThreadPoolExecutor(2) as threads:
        old, new = threads.map(ask, ("old", "new"))
    return old, new


def line(trial: Trial, old: Framework, new: Framework) -> str:
    """Return what was found and what is changed, as one paragraph."""
    settings, flags = trial.settings, (old.flags, new.flags)
    before, after = versions(trial, old.versions, new.versions)
    conditions = [
        f"{', '.join(compared(before, after, ' '))} on {flags[0].get('device')}".strip(),
        f"precision {settings.precision}",
        f"allocator: {variables.allocator()}",
    ]
    if not trial.subject.tuned and trial.old.framework == "tensorflow":
        conditions.append("in a tf.function")
    others = [{name: of_arm[name] for name in of_arm if name not in ELSEWHERE} for of_arm in flags]
    listed = list(compared(others[0], others[1], "="))
    conditions += [f"flags: {' '.join(listed)}"] if listed else []
    user_variables = {name: value for name, value in variables.deciding().items() if name not in settings.variables()}
    texts = [f"{name}={value}" for name, value in user_variables.items()]
    conditions += [f"your variables: {' '.join(texts)}"] if texts else []
    tuned = "tuned by Stele" if trial.subject.tuned else "as you run it"
    text = f"{tuned}: {'; '.join(conditions)}. Stele sets: {', '.join(changes(trial))}."
    return printable(text, keep="")


def versions(trial: Trial, *reported: Mapping[str, str | None]) -> list[dict[str, str | None]]:
    """Return what OLD and NEW run: the packages that they name, and what their workers report.

    What only one worker reports has the version of the other arm's package, as of Keras 2 in TensorFlow.
    """
    installed = [
        {package.name: getattr(package, arm) for package in (*trial.differences, *trial.named)}
        for arm in ("old", "new")
    ]
    names = dict.fromkeys([*(package.name for package in trial.named), *reported[0], *reported[1]])
    return [
        {name: reports.get(name) or packages.get(name) for name in names if name in reports or name in packages}
        for reports, packages in zip(reported, installed, strict=True)
    ]


def compared(old: Mapping[str, Any], new: Mapping[str, Any], sign: str) -> Iterator[str]:
    """Yield ``name value`` for each value that both arms know, with an arrow if it differs in NEW."""
    for name in old:
        if name not in new:
            continue
        pair = [old[name], new[name]]
        if any(value not in (None, False, "", []) for value in pair):
            values = pair if pair[0] != pair[1] else pair[:1]
            yield f"{name}{sign}{' → '.join(map(or_none, values))}"


def changes(trial: Trial) -> Iterator[str]:
    """Yield what Stele changes for the measurement."""
    settings = trial.settings
    threads = "1 thread" if settings.threads == 1 else f"{settings.threads} threads"
    yield f"{threads} on as many processors" if settings.device == "cpu" else threads
    program = (trial.subject.as_request() or {}).get("program")
    if measure.can_share((trial.old, trial.new), program, settings):
        yield "imports and first steps side by side"
    threads_of_user = os.environ.get(THREADS)
    if threads_of_user not in (None, "", str(settings.threads)):
        yield f"{THREADS}={settings.threads} in place of your {threads_of_user}"
    yield f"seed {settings.seed}"
    yield "PYTHONHASHSEED=0"
    yield "empty caches of compilers"
    yield "a TMPDIR that is deleted"
    if trial.subject.tuned:
        yield "garbage collection between the steps, not timed"
    if settings.malloc != "plain":
        yield f"an allocator that {ALLOCATORS[settings.malloc]} (--malloc {settings.malloc})"
    if trial.subject.tuned and any(metric.kinds == (SHORT,) for metric in trial.metrics):
        yield f"for memory, an allocator that {ALLOCATORS['mmap']}"
    if settings.device == "cuda":
        yield "memory of the device that grows as needed"
