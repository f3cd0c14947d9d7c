"""What a gate said and what it measured, from its record or from the file of ``stele gate --json``.

A gate that ended has its verdicts in the last line of its record. The launches of one
that was interrupted are judged again: that is pure, so it gives what the gate would have said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from stele import schema, subjects
from stele.environments.packages import Difference
from stele.errors import SteleError
from stele.gate import judgement
from stele.gate.entries import GateFile, Header, Together, Verdict
from stele.gate.metrics import KINDS
from stele.gate.record import Record
from stele.gate.trial import Trial
from stele.measuring.conditions import Conditions
from stele.measuring.run import Run
from stele.parity.ladder import Finding

PHASE_NAMES = {"train": "training", "infer": "inference"}
Kind = TypeVar("Kind")

KEY = ("verdicts",)  # of the last entry


class MeasuredPass(NamedTuple):
    """The launches of a pass, by arm; empty if one failed. ``kind`` is one of ``metrics.KINDS``, or "accuracy"."""

    kind: str
    cell: str
    number: int
    runs: dict[str, Run]
    conditions: Conditions | None


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
        "verdicts": list(verdicts),
        "named": list(trial.named),
        "differences": list(trial.differences),
    }


def not_judged(header: Mapping[str, Any]) -> list[str]:
    """Return what a gate leaves out: a phase of its subject, the comparison of results, times, memory."""
    subject = subjects.of_header(header)
    if isinstance(subject, subjects.Program):
        return [] if header["metrics"] else ["time"]
    phases = {phase for _, phase in header["cells"]}
    judged = {
        **{PHASE_NAMES[phase]: False for phase in subject.unmeasured(phases)},
        "whether both compute the same": header["parity"],
        "the time of a step": "step" in header["metrics"],
        "memory": any("memory" in name for name in header["metrics"]),
    }
    return [name for name, is_judged in judged.items() if not is_judged]


def with_together(whole: Together | None) -> dict[str, Any]:
    """Return the outcome of a command with more than one gate under its key, if there is one."""
    return {"together": whole} if whole is not None and whole.lines else {}


def status_with(status: str, whole: Together | None) -> str:
    """Return the status of a gate, which is no PASS if the command has another outcome than that of the gate."""
    return "INCONCLUSIVE" if status == "PASS" and whole is not None and whole.code else status


def of_record(record: Record, verdicts: Sequence[Verdict], last: Mapping[str, Any]) -> Outcome:
    """Return the Outcome of a record. ``last`` is its last entry. Raises SteleError for what is not a launch."""
    check(record.header, Header, str(record.path))
    return Outcome(
        source=str(record.path),
        header=record.header,
        verdicts=verdicts,
        versions={arm: record.versions(arm) for arm in ("old", "new")},
        launches=record.launches,
        seconds=record.spent,
        named=last.get("named", []),
        differences=last.get("differences", []),
        passes=[to_pass(line) for line in record.entries() if is_pass(line)],
        findings={
            (str(line["key"][1]), str(line["key"][2])): line["findings"]
            for line in record.entries()
            if line["key"][0] == "parity"
        },
        ended=bool(last),
        together=last.get("together"),
    )


def of_json(content: Any, source: str) -> Outcome:
    """Return the Outcome in a file of ``stele gate --json``. Raises SteleError if it is not one."""
    try:
        facts = schema.unwrap(content)
    except ValueError as error:
        raise SteleError(f"{source}: {error}.") from None
    values = check(facts, GateFile, source)
    return Outcome(
        source=source,
        header=facts,
        verdicts=with_known_statuses(values["verdicts"], source),
        versions=values["versions"],
        launches=values["launches"],
        seconds=values["seconds"],
        differences=values["differences"],
        together=values.get("together"),
    )


def check(values: Any, kind: type[Kind], source: str) -> Kind:
    """Return the values as an instance of a type. Raises SteleError, which names the file, if they are not one."""
    try:
        return schema.convert(values, kind)
    except (ValueError, SteleError) as error:
        raise SteleError(f"{source} is not a gate: {error}.") from None


def with_known_statuses(verdicts: Sequence[Verdict], source: str) -> Sequence[Verdict]:
    """Return the verdicts of a file. Raises SteleError, which names the file, if one has an unknown status."""
    for verdict in verdicts:
        if verdict.status not in judgement.STATUSES:
            raise SteleError(f"{source} has a verdict whose status is {verdict.status!r}.")
    return verdicts


def is_pass(line: Mapping[str, Any]) -> bool:
    return len(line["key"]) == 3 and line["key"][0] in (*KINDS, "accuracy")


def to_pass(line: Mapping[str, Any]) -> MeasuredPass:
    kind, cell, number = line["key"]
    cell = f"{cell} train" if kind == "accuracy" else cell
    return MeasuredPass(kind, cell, number, line.get("runs") or {}, line.get("conditions"))
