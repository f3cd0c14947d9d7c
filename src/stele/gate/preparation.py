"""Build OLD and NEW, and find out what they are: their packages, and what both say about the subject."""

import contextlib
import functools
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from stele import environments
from stele.environments import Environment, arms, builds, changes, installer, packages, relevance
from stele.environments.packages import Difference
from stele.errors import SteleError
from stele.gate import durations, setup
from stele.gate.entries import Verdict
from stele.gate.trial import Trial
from stele.measuring import progress
from stele.measuring.progress import say
from stele.measuring.worker import WorkerError
from stele.text import printable, without_passwords

ENVIRONMENTS = "environments"  # a part of a gate


def say_conditions(trial: Trial) -> None:
    """Start both arms and say what they run on. Raises SteleError if an environment lacks a package.

    Other failures are those of a release or of the model's file: the launches judge them.
    """
    with contextlib.suppress(WorkerError):
        progress.part("conditions", setup.line(trial, *setup.probe(trial)))


def prepare(trial: Trial, replaced: Iterable[str], *, fresh: bool = True) -> tuple[Trial, list[Verdict]]:
    """Build both arms. Return the trial with what they are known for, and BROKEN if NEW does not import.

    ``fresh`` is that of ``make``. Raises SteleError if NEW has the packages of OLD, but is not stated in its words.
    """
    for message in dict.fromkeys(line for arm in (trial.old, trial.new) for line in notes_about(arm)):
        say(printable(without_passwords(message), keep=""))
    start = time.monotonic()
    make(trial.old, fresh=fresh)
    trial = replace(trial, new=builds.resolved_like(trial.new, trial.old))
    import_failure = make_new(trial.new, trial.old, fresh=fresh and trial.new != trial.old)
    packages.require_upgrade(trial.old, trial.new)
    trial = with_packages(trial, set(replaced))
    different = f"; also different: {packages.shortened(trial.differences, 'see stele report')}"
    ready = f"ready after {durations.minutes(time.monotonic() - start)}"
    progress.part(ENVIRONMENTS, f"{ready}{different if trial.differences else ''}")
    say_model = functools.partial(progress.part, "model")
    in_old = trial.subject.resolve(trial.old, trial.cells, timeout=trial.timeout, say=say_model)
    both = in_old.alone(trial.new) if import_failure else in_old.compare(trial.new)
    return replace(trial, subject=both.subject, old=both.old, new=both.new, compared=both.compared), import_failure


def notes_about(environment: Environment) -> list[str]:
    """Return the lines about what the user's file has: what is left out, and which index is used."""
    options = ", ".join(environment.resolution.options)
    return [*environment.resolution.messages, *([f"options of the index: {options}"] if options else [])]


def with_packages(trial: Trial, replaced: set[str]) -> Trial:
    """Return the trial with the packages that OLD and NEW name or ``--changed`` found, and others that differ."""
    old, new = packages.of_environment(trial.old), packages.of_environment(trial.new)
    if not old or not new:  # unknown
        return trial
    named = arms.packages_in(trial.old.name, trial.new.name) | replaced
    present = sorted(name for name in named if name in old or name in new)
    versions = (Difference(name, old.get(name), new.get(name)) for name in present)
    differing = packages.differences(old, new, named)
    if differing:
        frameworks = {name for name in (*old, *new) if changes.FRAMEWORKS.fullmatch(name)}
        needed = relevance.needed_by(named or frameworks, trial.new)
        differing = relevance.by_relevance(differing, frameworks, needed)
    return replace(trial, named=tuple(versions), differences=tuple(differing))


def make(environment: Environment, *, fresh: bool = False) -> None:
    """Build an environment if it is missing. With ``fresh``, first resolve ranges again, as they are today.

    Raises SteleError if it cannot be built.
    """
    if fresh and builds.is_dated(environment):
        resolve_again(environment)
    state = environments.state(environment)
    if state.status != "ready" and environment.lock is not None:
        progress.part(ENVIRONMENTS, f"building {environment.name} ...", runs=True)
        with progress.waiting(f"building {environment.name}"):
            builds.make(environment)
    elif state.status != "ready":
        raise SteleError(f"'{environment.name}' is {state.status}: {state.reason}")


def resolve_again(environment: Environment) -> None:
    """Resolve typed requirements as they are today; without a network, say when that was done."""
    lock = environment.lock
    if installer.is_offline() and lock is not None and lock.exists():
        when = datetime.fromtimestamp(lock.stat().st_mtime)
        say(f"{environment.name}: UV_OFFLINE is set, so the packages are those of {when:%Y-%m-%d %H:%M}.")
        return
    with progress.waiting(f"resolving {environment.name}"):
        builds.resolve(environment, builds.require_interpreter(environment), fresh=True)


def make_new(new: Environment, old: Environment, *, fresh: bool = False) -> list[Verdict]:
    """Build NEW. Return BROKEN if it installs, its import fails twice, and that of OLD works now; else nothing.

    Raises SteleError if the import of OLD fails, too: what both have in common is the cause.
    """
    try:
        make(new, fresh=fresh)
        return []
    except builds.ImportFailed as error:
        problem = builds.import_error_now(old)
        if problem is not None:
            raise SteleError(
                f"The import fails in OLD and in NEW, so no release is to blame. Check your environment variables and "
                f"the libraries of this machine.\nOLD, '{old.name}':\n    {problem}\nNEW: {error}"
            ) from None
    try:
        make(new)
    except builds.ImportFailed as error:
        return [Verdict("all", "all", "import", "BROKEN", f"NEW: {error}")]
    return []
