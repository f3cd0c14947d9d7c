"""What both arms run on, as their workers report it before anything is measured, and what Stele changes to measure."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from stele.gate.trial import Trial
from stele.measuring import measure, progress, variables, worker
from stele.measuring.settings import THREADS
from stele.text import printable

# flags that have another place in the line, or that say nothing about the framework
ELSEWHERE = ("device", "threads", "interop_threads", "processors", "python", "numpy")


def probe(trial: Trial) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what ``configure`` answers in OLD and in NEW. Raises WorkerError if one does not start."""
    model = None if trial.model is None else trial.model.as_request()

    def ask(arm: str) -> dict[str, Any]:
        launched = worker.launch(trial.arm(arm), trial.settings, name=f"setup-{arm}", timeout=trial.timeout)
        with launched as live:
            return measure.configure(live, trial.settings, model=model)

    with progress.waiting("starting both arms"), ThreadPoolExecutor(2) as threads:
        old, new = threads.map(ask, ("old", "new"))
    return old, new


def line(trial: Trial, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return what was found and what is changed, as one line."""
    settings, flags = trial.settings, (old["flags"], new["flags"])
    versions = [
        {one.name: value for one in trial.named if (value := getattr(one, arm))} for arm in ("old", "new")
    ]
    before, after = ({**named, **one["versions"]} for named, one in zip(versions, (old, new), strict=True))
    found = [
        f"{', '.join(compared(before, after, ' '))} on {flags[0].get('device')}",
        f"precision {settings.precision}",
        f"allocator: {variables.allocator()}",
    ]
    if trial.model is not None and trial.old.framework == "tensorflow":
        found.append("in a tf.function")
    others = [{name: one[name] for name in one if name not in ELSEWHERE} for one in flags]
    listed = list(compared(others[0], others[1], "="))
    found += [f"flags: {' '.join(listed)}"] if listed else []
    kept = {name: value for name, value in variables.deciding().items() if name not in settings.variables()}
    own = [f"{name}={value}" for name, value in kept.items()]
    found += [f"your variables: {' '.join(own)}"] if own else []
    tuned = "tuned by Stele" if trial.model is None else "as you run it"
    text = f"conditions, {tuned}: {'; '.join(found)}. Stele sets: {', '.join(changes(trial))}."
    return printable(text, keep="")


def compared(old: Mapping[str, Any], new: Mapping[str, Any], sign: str) -> Iterator[str]:
    """Yield ``name value`` for each value that is known, with an arrow if it differs in NEW."""
    for name in dict.fromkeys([*old, *new]):
        pair = [old.get(name), new.get(name)]
        if any(value not in (None, False, "", []) for value in pair):
            values = pair if pair[0] != pair[1] else pair[:1]
            yield f"{name}{sign}{' → '.join(map(str, values))}"


def changes(trial: Trial) -> Iterator[str]:
    """Yield what Stele changes for the measurement."""
    settings = trial.settings
    threads = "1 thread" if settings.threads == 1 else f"{settings.threads} threads"
    yield f"{threads} on as many processors" if settings.device == "cpu" else threads
    own = os.environ.get(THREADS)
    if own not in (None, "", str(settings.threads)):
        yield f"{THREADS}={settings.threads} in place of your {own}"
    yield f"seed {settings.seed}"
    yield "PYTHONHASHSEED=0"
    yield "empty caches of compilers"
    yield "a TMPDIR that is deleted"
    if trial.model is None:
        yield "garbage collection between the steps, not timed"
    if settings.malloc != "plain":
        yield f"an allocator that keeps freed memory (--malloc {settings.malloc})"
    if settings.device == "cuda":
        yield "memory of the device that grows as needed"
