"""Launch OLD and NEW in turns, each under its profiler after its timed steps."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from stele.environments import Environment, permissions
from stele.errors import SteleError
from stele.explain.comparison import NEW, OLD, Profile
from stele.measuring import measure
from stele.measuring.measure import Plan
from stele.measuring.run import Run
from stele.measuring.settings import Settings


class Launch(NamedTuple):
    """One launch of each arm."""

    old: Run
    new: Run


def launch(
    old: Environment, new: Environment, plan: Plan, settings: Settings, *, times: int, timeout: float
) -> Iterator[Launch]:
    """Yield launches of both arms, whose workers take turns step by step. Raises SteleError if one fails."""
    for number in range(times):
        order = {OLD: old, NEW: new} if number % 2 == 0 else {NEW: new, OLD: old}
        try:
            runs = measure.side_by_side(order, plan, settings, timeout=timeout)
        except measure.SideFailed as error:
            raise SteleError(f"{error.side.upper()} failed: {error}") from None
        yield Launch(runs[OLD], runs[NEW])


def profile(run: Run) -> Profile:
    """Return the Profile of a launch. Raises SteleError if its framework has no profiler."""
    if run.profile is None:
        raise SteleError(f"The worker of '{run.environment}' is not in Python, and has no profiler.")
    return Profile(median(run.counted_seconds), run.profile.step, run.profile.operations)


def find_sampler() -> str | None:
    """Return the path of py-spy, for a framework without a profiler; None if it is not installed.

    It is looked for beside this Python, and then on PATH. Raises SteleError if other users can replace it.
    """
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    program = shutil.which("py-spy", path=folders)
    if program is not None:
        permissions.check(program)
    return program
