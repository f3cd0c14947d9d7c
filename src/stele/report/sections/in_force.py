"""What was in force, and what differed between OLD and NEW: packages, libraries, flags, settings and defaults."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from stele import environments, schema
from stele.errors import SteleError
from stele.gate.outcome import Outcome
from stele.measuring.run import Run
from stele.parity import defaults
from stele.report.content import Figure, Section, Table, Value

# packages and flags that are libraries of kernels, of threads, or of communication
LIBRARY = re.compile(r"blas|mkl|dnn|openmp|omp|cuda|cublas|nccl|xnn|ynn|eigen|tbb|triton|cutlass|tensorrt|xla", re.I)
HEAD = ("kind", "name", "OLD", "NEW", "differs")
TEXT = (
    "The first table has only what differs: one of these lines is the likely cause of a change. The second one has "
    "everything that was read back from the frameworks while they measured."
)


class Fact(NamedTuple):
    kind: str
    name: str
    old: Any
    new: Any

    @property
    def differs(self) -> bool:
        return bool(self.old != self.new)


def section(gates: Sequence[Outcome], runs: Sequence[Run]) -> Section | None:
    figures = [figure for gate in gates for figure in figures_of(gate)]
    figures += [Figure(conditions(runs))] if runs else []
    return Section("in-force", "In force, and different", TEXT, figures) if figures else None


def figures_of(gate: Outcome) -> Iterator[Figure]:
    facts = list(facts_of(gate))
    compared = f"{gate.header['old']} and {gate.header['new']}"
    differing = [row(fact) for fact in facts if fact.differs]
    yield Figure(Table("differences", f"What differs between {compared}", HEAD, differing))
    yield Figure(Table("in-force", f"Everything in force in {compared}", HEAD, [row(fact) for fact in facts]))


def facts_of(gate: Outcome) -> Iterator[Fact]:
    for package in (*gate.named, *gate.differences):
        yield Fact(kind_of(package.name, "package"), package.name, package.old, package.new)
    yield from pairs("reported version", gate.versions.get("old", {}), gate.versions.get("new", {}))
    old, new = first_run(gate, "old"), first_run(gate, "new")
    yield from pairs("flag", *(run.framework.flags if run else {} for run in (old, new)))
    yield from pairs("reported about its mode", *((run.in_force if run else None) or {} for run in (old, new)))
    if old and new:
        yield from pairs("plan", old.options.as_request(), new.options.as_request())
        yield from pairs("data", schema.to_json(old.data), schema.to_json(new.data))
    yield from changed_defaults(gate)
    yield from pairs("setting", gate.header["settings"], gate.header["settings"])
    yield from pairs("machine", gate.header["machine"], gate.header["machine"])


def pairs(kind: str, old: Any, new: Any) -> Iterator[Fact]:
    for name in dict.fromkeys([*old, *new]):
        yield Fact(kind_of(name, kind), name, old.get(name), new.get(name))


def kind_of(name: str, kind: str) -> str:
    return f"library ({kind})" if LIBRARY.search(name) else kind


def first_run(gate: Outcome, arm: str) -> Run | None:
    return next((pass_.runs[arm] for pass_ in gate.passes if arm in pass_.runs), None)


def changed_defaults(gate: Outcome) -> Iterator[Fact]:
    """Yield the defaults that differ, if those of both releases are recorded."""
    tables = [recorded_defaults(gate, arm) for arm in ("old", "new")]
    if tables[0] is None or tables[1] is None:
        return
    for change in defaults.changes(tables[0], tables[1]):
        if not change.fact.startswith(defaults.RELEASE):
            yield Fact("default", change.fact, change.old, change.new)


def recorded_defaults(gate: Outcome, arm: str) -> defaults.Table | None:
    """Return the recorded defaults of an arm; None if there are none, or they cannot be read."""
    release = next(iter(gate.versions.get(arm, {}).values()), None)
    name = gate.header[arm].partition("==")[0].partition("@")[0]
    if release is None or name not in environments.names():
        return None
    try:
        return defaults.read(defaults.record_path(environments.load(name), release), name)
    except SteleError:
        return None


def row(fact: Fact) -> list[Value]:
    return [fact.kind, fact.name, text_of(fact.old), text_of(fact.new), "yes" if fact.differs else "no"]


def text_of(value: Any) -> Value:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def conditions(runs: Sequence[Run]) -> Table:
    """Return what was in force in the newest Run of each environment."""
    newest: dict[str, Run] = {run.environment: run for run in runs}
    rows: list[list[Value]] = []
    for name, run in newest.items():
        framework, settings = run.framework, schema.to_json(run.settings)
        facts = {**framework.versions, **framework.flags, **settings, **(run.in_force or {}), "mode": run.mode}
        rows += [[name, fact, text_of(value)] for fact, value in facts.items()]
    return Table("in-force-of-runs", "In force in each environment", ("environment", "name", "value"), rows)
