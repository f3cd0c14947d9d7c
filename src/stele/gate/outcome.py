"""What a gate said and what it measured, from its record or from the file of ``stele gate --json``.

A gate that ended has its verdicts in the last line of its record. Of one that was interrupted, and of an older record,
the launches are judged again: that is pure, so it gives what the gate would have said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

from stele import schema
from stele.environments.packages import Difference
from stele.errors import SteleError
from stele.gate import judgement
from stele.gate.metrics import KINDS
from stele.gate.record import Record
from stele.gate.trial import Trial
from stele.gate.verdict import Verdict
from stele.measuring.conditions import Conditions
from stele.measuring.run import PHASES, Run
from stele.parity.ladder import Finding
from stele.statistics import Estimate

PHASE_NAMES = {"train": "training", "infer": "inference"}
KEY = ("verdicts",)  # of the last entry


class Header(TypedDict):
    """What a report needs of the header; docs/schemas.md describes it."""

    old: str
    new: str
    cells: list[list[str]]
    metrics: dict[str, float]
    parity: bool
    settings: dict[str, Any]
    machine: dict[str, Any]


class Said(TypedDict):
    """The last entry of a record, or a part of the file of ``--json``."""

    verdicts: list[dict[str, Any]]


class MeasuredPass(NamedTuple):
    """The launches of a pass, by arm; empty if one failed. ``kind`` is one of ``metrics.KINDS``, or "accuracy"."""

    kind: str
    cell: str
    number: int
    runs: dict[str, Run]
    conditions: Conditions | None


class Together(NamedTuple):
    """All that a command gates, if it is more than one gate: its exit code, and a line for each other change."""

    code: int
    lines: Sequence[str]

    @property
    def sentence(self) -> str:
        end = "" if self.code == 0 else " This is not a pass."
        return f"All changes together: exit code {self.code}.{end}"

    @property
    def as_entry(self) -> dict[str, Any]:
        return {"code": self.code, "lines": list(self.lines)}


@dataclass(frozen=True)
class Outcome:
    """A gate: what it compared, what it said, and what it measured."""

    source: str  # the path of the file
    header: dict[str, Any]
    verdicts: Sequence[Verdict]
    versions: dict[str, dict[str, str | None]]  # by arm
    launches: int
    seconds: float
    named: Sequence[Difference] = ()
    differences: Sequence[Difference] = ()
    passes: Sequence[MeasuredPass] = ()
    findings: Mapping[tuple[str, str], Sequence[Finding]] = field(default_factory=dict)  # by task and arm
    ended: bool = True  # whether the verdicts are those of the gate itself
    together: Together | None = None  # of the command, if it gates more


def entry(trial: Trial, verdicts: Sequence[Verdict], whole: Together | None = None) -> dict[str, Any]:
    """Return the last entry of a record."""
    return {
        **with_together(whole),
        "took": 0.0,
        "verdicts": [as_json(verdict) for verdict in verdicts],
        "named": [one._asdict() for one in trial.named],
        "differences": [one._asdict() for one in trial.differences],
    }


def not_judged(header: Mapping[str, Any]) -> list[str]:
    """Return what a gate leaves out: a phase of the user's model, the comparison of results, times, memory."""
    phases = {phase for _, phase in header["cells"]}
    judged = {
        **({PHASE_NAMES[phase]: phase in phases for phase in PHASES} if "model" in header else {}),
        "whether both compute the same": header["parity"],
        "the time of a step": "step" in header["metrics"],
        "memory": any("memory" in name for name in header["metrics"]),
    }
    return [name for name, is_judged in judged.items() if not is_judged]


def with_together(whole: Together | None) -> dict[str, Any]:
    """Return the outcome of a command with more than one gate under its key, if there is one."""
    return {"together": whole.as_entry} if whole is not None and whole.lines else {}


def status_with(status: str, whole: Together | None) -> str:
    """Return the status of a gate, which is no PASS if the command has another outcome than that of the gate."""
    return "INCONCLUSIVE" if status == "PASS" and whole is not None and whole.code else status


def to_together(said: Mapping[str, Any]) -> Together | None:
    """Return the outcome of a command with more than one gate, if a file has it."""
    values = said.get("together")
    if not isinstance(values, dict) or not isinstance(values.get("code"), int):
        return None
    lines = values.get("lines")
    return Together(values["code"], [str(one) for one in lines] if isinstance(lines, list) else [])


def as_json(verdict: Verdict) -> dict[str, Any]:
    ratio = None if verdict.ratio is None else verdict.ratio._asdict()
    return {**verdict._asdict(), "ratio": ratio}


def of_record(record: Record, verdicts: Sequence[Verdict], said: Mapping[str, Any]) -> Outcome:
    """Return the Outcome of a record. ``said`` is its last entry. Raises SteleError for what is not a launch."""
    check(record.header, Header, str(record.path))
    return Outcome(
        source=str(record.path),
        header=record.header,
        verdicts=verdicts,
        versions={arm: record.versions(arm) for arm in ("old", "new")},
        launches=record.launches,
        seconds=record.spent,
        named=to_differences(said.get("named", [])),
        differences=to_differences(said.get("differences", [])),
        passes=[to_pass(record, one) for one in record.entries() if is_pass(one)],
        findings={
            (str(one["key"][1]), str(one["key"][2])): [Finding(**values) for values in one["findings"]]
            for one in record.entries()
            if one["key"][0] == "parity"
        },
        ended=bool(said),
        together=to_together(said),
    )


def of_json(content: Any, source: str) -> Outcome:
    """Return the Outcome in a file of ``stele gate --json``. Raises SteleError if it is not one."""
    try:
        facts = schema.unwrap(content)
    except ValueError as error:
        raise SteleError(f"{source}: {error}.") from None
    check(facts, Header, source)
    return Outcome(
        source=source,
        header=facts,
        verdicts=to_verdicts(facts, source),
        versions={arm: dict(numbers) for arm, numbers in (facts.get("versions") or {}).items()},
        launches=int(facts.get("launches") or 0),
        seconds=float(facts.get("seconds") or 0.0),
        differences=to_differences(facts.get("differences", [])),
        together=to_together(facts),
    )


def check(values: Any, kind: type, source: str) -> None:
    try:
        schema.check_fields(values, kind)
    except ValueError as error:
        raise SteleError(f"{source} is not a gate: {error}.") from None


def to_verdicts(said: Mapping[str, Any], source: str) -> list[Verdict]:
    """Return the verdicts of a file. Raises SteleError, which names the file, if one has other keys."""
    check(said, Said, source)
    try:
        return [to_verdict(values) for values in said["verdicts"]]
    except (TypeError, ValueError) as error:
        raise SteleError(f"{source} has a verdict that this version cannot read: {error}.") from None


def to_verdict(values: Mapping[str, Any]) -> Verdict:
    known = {key: value for key, value in values.items() if key in Verdict._fields}
    ratio = known.get("ratio")
    verdict = Verdict(**{**known, "ratio": None if ratio is None else Estimate(**ratio)})
    for name in ("task", "phase", "metric", "status", "message"):
        schema.check(getattr(verdict, name), str, name)
    for value in (verdict.p, verdict.passes, *(verdict.ratio or ())):
        schema.check(value, float | None, "a number")
    if verdict.status not in judgement.STATUSES:
        raise ValueError(f"its status is {verdict.status!r}")
    return verdict


def to_differences(values: Any) -> list[Difference]:
    """Return the packages of a file, without entries that are none."""
    entries = values if isinstance(values, list) else []
    return [
        Difference(str(one.get("name")), one.get("old"), one.get("new"))
        for one in entries
        if isinstance(one, dict)
    ]


def is_pass(one: Mapping[str, Any]) -> bool:
    return len(one["key"]) == 3 and one["key"][0] in (*KINDS, "accuracy")


def to_pass(record: Record, one: Mapping[str, Any]) -> MeasuredPass:
    """Return the pass of an entry. Raises SteleError, which names it, if one of its Runs is not a Run."""
    kind, cell, number = one["key"]
    try:
        runs = {arm: Run.from_dict(run) for arm, run in (one.get("runs") or {}).items()}
        conditions = Conditions(**one["conditions"]) if one.get("conditions") else None
    except (SteleError, TypeError, AttributeError) as error:
        raise SteleError(f"{record.path}, entry {one['key']!r}, is not a launch: {error}") from None
    return MeasuredPass(kind, f"{cell} train" if kind == "accuracy" else cell, number, runs, conditions)
