"""How long launches take on this machine, from earlier gates: so that a gate can say how long it will take."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from stele import files, schema
from stele.data import cache
from stele.gate.record import Record
from stele.gate.trial import Cell, Trial

if TYPE_CHECKING:
    from stele.gate.state import Probe

PASSES = (3, 8)  # that most verdicts take: of equal releases, and of one that is 10 % slower
UNKNOWN = 60.0  # seconds of a verdict if no launch shows how long one takes
FILE = "durations.json"

Say = Callable[[str], object]


def key_of(trial: Trial, cell: Cell, kind: str) -> str:
    model = "" if trial.model is None else f" {trial.model.spec}"
    return f"{trial.old.framework} {cell} {kind} {trial.scale} {trial.settings.processors}{model}"


def read() -> dict[str, Any]:
    """Return the seconds by key; nothing if the file is missing or damaged, because it is only an estimate."""
    try:
        content = schema.read(cache.folder() / FILE)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def remember(trial: Trial, cell: Cell, kind: str, seconds: float) -> None:
    """Store how long a pass of this cell took."""
    content = {**read(), key_of(trial, cell, kind): float(f"{seconds:.4g}")}
    files.write_text(cache.folder() / FILE, json.dumps(content, indent=1, sort_keys=True) + "\n")


def estimate(trial: Trial, cell: Cell, kind: str) -> float | None:
    """Return the seconds that a pass took in an earlier gate; None if there was none."""
    value = read().get(key_of(trial, cell, kind))
    return float(value) if isinstance(value, int | float) else None


def announce(trial: Trial, what: str, cells: Sequence[tuple[Cell, str]], say: Say, *, times: int = 1) -> None:
    """Print what starts, and how long it takes if an earlier gate shows that."""
    seconds = [estimate(trial, *cell) for cell in cells]
    known = [value for value in seconds if value is not None]
    say(f"{what}: about {minutes(times * sum(known))}" if cells and len(known) == len(cells) else what)


def announce_timing(
    trial: Trial, record: Record, probes: "Sequence[Probe]", say: Say, *, measured: int = 0
) -> bool:
    """Print how long the passes take, if something is timed, and whether that may be more than the budget.

    ``measured`` is the number of passes so far. Returns False if no earlier launch shows how long one takes.
    """
    if not probes or any(record.get(probe.kind, str(probe.cell), measured) for probe in probes):
        return True  # nothing is timed, or it was announced when these passes were measured
    seconds = [estimate(trial, probe.cell, probe.kind) for probe in probes]
    known = [value for value in seconds if value is not None]
    if len(known) < len(seconds):
        say("time and memory: the first pass shows how long a pass takes on this machine")
        return False
    least, most = ((passes - measured) * sum(known) for passes in PASSES)
    left = trial.budget - record.spent
    passes = f"{PASSES[0] - measured} to {PASSES[1] - measured} {'more ' if measured else ''}passes"
    short = " That may be too little." if least > left else ""
    say(
        f"time and memory: most verdicts need {passes}, here about {minutes(least)} to {minutes(most)}; "
        f"the budget has {minutes(max(left, 0))} left.{short}"
    )
    return True


def minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.1f} min"
