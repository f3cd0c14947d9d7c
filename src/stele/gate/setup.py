"""What both arms run on, as their workers report it before anything is measured, and what Stele changes to measure."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from stele.gate.trial import Trial
from stele.measuring import measure, progress, variables, worker
from stele.measuring.settings import THREADS
from stele.text import or_none, printable

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
    before, after = versions(trial, old["versions"], new["versions"])
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


def versions(trial: Trial, *reported: Mapping[str, str | None]) -> list[dict[str, str | None]]:
    """Return what OLD and NEW run: the packages that they name, and what their workers report.

    What only one worker reports has the version of the other arm's package, as of Keras 2 in TensorFlow.
    """
    installed = [
        {one.name: getattr(one, arm) for one in (*trial.differences, *trial.named)} for arm in ("old", "new")
    ]
    names = dict.fromkeys([*(one.name for one in trial.named), *reported[0], *reported[1]])
    return [
        {name: own.get(name) or packages.get(name) for name in names if name in own or name in packages}
        for own, packages in zip(reported, installed, strict=True)
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
