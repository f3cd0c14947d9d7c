"""How long launches take on this machine, from earlier gates: so that a gate can say how long it will take."""

import json

from stele import files, schema
from stele.data import cache
from stele.gate.gate import Gate
from stele.gate.state import PASSES, State
from stele.gate.trial import ARMS, Trial
from stele.measuring import progress
from stele.subjects import Cell

FILE = "durations.json"
TIMING = "time, memory"  # a part of a gate
SLOWEST, LONG = 3, 10.0  # items that are named, and the seconds of a pass from which on


def key_of(trial: Trial, cell: Cell, kind: str) -> str:
    label = trial.subject.label and f" {trial.subject.label}"
    return f"{trial.old.framework} {cell} {kind} {trial.scale} {trial.settings.processors}{label}"


def read() -> dict[str, float]:
    """Return the seconds by key; nothing if the file is missing or damaged, because it is only an estimate."""
    try:
        content = schema.read(cache.folder() / FILE)
    except (OSError, ValueError):
        return {}
    pairs = content.items() if isinstance(content, dict) else ()
    return {key: float(value) for key, value in pairs if isinstance(value, int | float)}


def remember(trial: Trial, cell: Cell, kind: str, seconds: float) -> None:
    """Store how long a pass of this cell took."""
    content = {**read(), key_of(trial, cell, kind): float(f"{seconds:.4g}")}
    files.write_text(cache.folder() / FILE, json.dumps(content, indent=1, sort_keys=True) + "\n")


def estimate(trial: Trial, cell: Cell, kind: str) -> float | None:
    """Return the seconds that a pass took in an earlier gate, or takes by its launches so far; None if unknown."""
    of_launch = trial.subject.launch_seconds(cell)
    return read().get(key_of(trial, cell, kind), None if of_launch is None else len(ARMS) * of_launch)


def slowest(trial: Trial) -> str:
    """Return ``. Slowest: test_a 12 s, test_b 3 s`` of the cells whose passes take a large part of the time."""
    seconds = {cell: len(ARMS) * (trial.subject.launch_seconds(cell) or 0) for cell in trial.cells}
    longest = sorted(seconds, key=lambda cell: -seconds[cell])[:SLOWEST]
    shown = [f"{cell.task} {minutes(seconds[cell])} a pass" for cell in longest if seconds[cell] >= LONG]
    return f" Slowest: {', '.join(shown)}." if shown and len(trial.cells) > 1 else ""


def announce(gate: Gate, part: str, what: str, cell: Cell, kind: str) -> None:
    """Say what starts, and how long it takes if an earlier gate shows that."""
    seconds = estimate(gate.trial, cell, kind)
    progress.part(part, what if seconds is None else f"{what}: about {minutes(seconds)}", runs=True)


def announce_timing(gate: Gate, state: State) -> bool:
    """Say how long the passes take, if something is timed, and whether that may be more than the budget.

    Returns False if no earlier launch shows how long one takes.
    """
    count = min(map(len, state.results.values()), default=0)
    if not state.results or any(len(results) > count for results in state.results.values()):
        return True  # nothing is timed, or passes of some probes have been measured beyond those of the others
    seconds = [estimate(gate.trial, probe.cell, probe.kind) for probe in state.results]
    estimated = [value for value in seconds if value is not None]
    if len(estimated) < len(seconds):
        progress.part(TIMING, "the first pass shows how long a pass takes on this machine", runs=True)
        return False
    least, most = ((passes - count) * sum(estimated) for passes in PASSES)
    passes = f"{PASSES[0] - count} to {PASSES[1] - count} {'more ' if count else ''}passes"
    short = " That may be too little." if least > gate.left else ""
    progress.part(
        TIMING,
        f"most verdicts need {passes}, here about {minutes(least)} to {minutes(most)}; "
        f"the budget has {minutes(max(gate.left, 0))} left.{short}{slowest(gate.trial)}",
        runs=True,
    )
    return True


def minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.1f} min"
