"""What a gate writes: the header and the lines of its record, the file of ``--json``, and a verdict.

These types are the only definition of these documents.
"""

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import msgspec

from stele.environments.packages import Difference
from stele.gate.metrics import KINDS
from stele.measuring.answers import ItemOutcome, NotCollected, Value
from stele.measuring.conditions import Conditions
from stele.measuring.content import Groups
from stele.measuring.machine import Machine
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.parity.ladder import Finding
from stele.schema import about
from stele.statistics import Estimate
from stele.subjects import ModelRequest
from stele.subjects.programs import ProgramFacts


class Verdict(msgspec.Struct, frozen=True):
    """What a gate says of one metric in one cell."""

    task: Annotated[str, about("task or model; `all` if the import of NEW fails")]
    phase: Annotated[str, about("`train`, `infer` or `all`")]
    metric: Annotated[
        str,
        about(
            "a metric, `parity`, `accuracy`, `control` or `import`; `all` for a launch that fails, or a missing cell"
        ),
    ]
    status: Annotated[str, about("`BROKEN`, `MISSING`, `REGRESSED`, `INCONCLUSIVE`, `PASS`, `IMPROVED`, or `UNKNOWN`")]
    message: Annotated[str, about("the evidence as a sentence")]
    ratio: Annotated[
        Estimate | None, about("estimate with its 98 % interval; of the control OLD / OLD", "NEW / OLD")
    ] = None
    passes: Annotated[int, about("number of passes; for accuracy, of seeds")] = 0
    p: Annotated[float | None, about("p-value, valid after any number of passes: 1 / e-value")] = None
    needs: Annotated[float | None, about("about how many more seconds may decide it; null if no budget helps", "s")] = (
        None
    )


class Header(TypedDict):
    """What is compared, and how."""

    old: Annotated[str, about("OLD, as on the command line")]
    new: Annotated[str, about("NEW, as on the command line")]
    cells: Annotated[list[tuple[str, str]], about("the cells: `[task, phase]`; phase is `train` or `infer`")]
    metrics: Annotated[
        dict[str, float],
        about("margin of each metric, by name: growth that has to be ruled out before it passes", "fraction"),
    ]
    tolerances: Annotated[dict[str, float], about("growth that is accepted, by metric", "fraction")]
    parity: Annotated[bool, about("whether parity is judged")]
    accuracy: Annotated[bool, about("whether accuracy is judged")]
    settings: Settings
    scales: Annotated[tuple[str, str], about("scale of the timed launches, and of the trainings for accuracy")]
    seed: Annotated[int, about("seed of the random orders")]
    content: Groups
    machine: Machine


class RecordHeader(Header, total=False):
    """A file of JSON lines, `.stele/gates/<time>-<old>-<new>.jsonl`. Each launch is written before the next one starts.

    `stele report` shows a record. `stele calibrate` and `stele bisect` write the same format in `.stele/calibrations`
    and `.stele/bisections`. The first line is the header. Each following line is an entry: a *LaunchEntry*,
    *ParityEntry*, *InspectionEntry*, *ModelParityEntry* or *LastEntry*, as its `key` says.

    With `--model`, what OLD starts from is beside the record: its initial weights, in a file with the suffix `.npz`;
    the values of `example_inputs()`, in one with `.inputs.npz`; and if NEW's parameters have other names, the
    checkpoint that OLD's library writes, in a folder with the suffix `.checkpoint`.
    """

    model: Annotated[ModelRequest, about("Only with `--model`")]
    program: Annotated[ProgramFacts, about("Only of a program of the user, such as a test suite")]
    target: Annotated[float, about("Only with `--target`: accuracy of the metric `time-to-target`", "fraction")]
    command: Annotated[list[str], about("Only of `stele gate`: the words of the command, after `stele`")]


class Round(TypedDict):
    """An attempt in which a launch failed."""

    arms: Annotated[list[str], about("the arms that were launched")]
    failures: Annotated[dict[str, str], about("a message by arm")]


class Line(TypedDict):
    """What each entry has."""

    key: Annotated[list[str | int], about("which entry it is")]
    took: Annotated[float, about("duration, including failed attempts", "s")]


class First(TypedDict, total=False):
    content: Annotated[
        Groups,
        about("Only if this launch was the first that read some files or variables: `files` and `model_variables`"),
    ]


class BehaviourEntry(Line, First):
    """`["behaviour", number of the pass, arm]`: a launch of a program of the user, such as a test suite."""

    whole: Annotated[bool, about("whether all items were run, and not only some of them once more")]
    items: Annotated[dict[str, ItemOutcome], about("what each item did, by its name")]
    not_collected: Annotated[list[NotCollected], about("what failed while the items were collected")]
    failure: Annotated[str | None, about("why the program did not start; then `--resume` launches it again")]
    versions: Annotated[dict[str, str | None], about("of what runs the items")]
    conditions: Conditions


class OtherEntry(Line, First):
    """An entry of another kind."""


class LaunchEntry(Line, First):
    """`["long", "<task> <phase>", number]` times steps; `["short", …]`, with the same parts, measures memory.

    `["latency", …]`, `["blocks", …]`, `["warm", …]`, `["new-batch", …]`, `["sizes", …]`, `["profiled", …]`,
    `["loader", …]`, `["peak", …]` and `["trainings", …]` measure the metrics that are judged only if they are selected.
    `["accuracy", task, seed]` is a training.
    """

    runs: Annotated[
        dict[str, Run] | None,
        about("by arm (`old`, `control`, `new`, `repeat`), in the order of the launches; null if all attempts failed"),
    ]
    rounds: Annotated[list[Round], about("attempts in which a launch failed")]
    conditions: Conditions


class ParityEntry(Line):
    """`["parity", task, arm]`"""

    findings: Annotated[list[Finding], about("the rungs")]
    failure: Annotated[str | None, about("why the worker failed; then `--resume` launches it again")]


class InspectionEntry(Line):
    """`["model inspection"]`, if NEW's model is another one than OLD's, or cannot be built."""

    differences: Annotated[list[str], about("of NEW's model from OLD's")]
    failure: Annotated[str | None, about("why NEW cannot build or call the model")]


class Failed(TypedDict, total=False):
    kind: Annotated[str | None, about("Only with a failure: type of the error that the worker reported")]
    launches: Annotated[int, about("Only with a failure: number of launches, which all failed")]
    repeated: Annotated[
        bool,
        about("Only with a failure: whether two launches one after the other failed with the same exception"),
    ]


class OfSuccess(TypedDict, total=False):
    memory: Annotated[int | None, about("Only without a failure: peak resident memory of the process", "byte")]


class ModelParityEntry(Line, First, Failed, OfSuccess):
    """`["model parity", name]`. The names are `old`, `again` (OLD in a second process in which everything is equal),
    `<number> threads` (OLD with another number of threads), `new`, `launch 4` (OLD, if NEW fails), `defaults` (settings
    of random numbers whose defaults differ) and `new, with <setting> as in OLD`.
    """

    numbers: Annotated[
        dict[str, Any] | None,
        about(
            "answers of the worker to `parity`, merged; for `old` two of them, `reference` and `reversed` (the batch), "
            "and `files`, hashes of what it wrote for the other launches; for `defaults`: `changes`"
        ),
    ]
    failure: Annotated[str | None, about("why there are no numbers")]


class Together(msgspec.Struct, frozen=True):
    """All that a command gates, if it is more than one gate."""

    code: Annotated[int, about("the exit code of the command, as if all gates passed")]
    lines: Annotated[Sequence[str], about("the other gates, and what is not gated")]

    @property
    def sentence(self) -> str:
        end = "" if self.code == 0 else " This is not a pass."
        return f"All changes together: exit code {self.code}.{end}"


class OfSeveral(TypedDict, total=False):
    together: Annotated[Together, about("Only if `--changed` found more than this gate")]


class LastEntry(Line, OfSeveral):
    """`["verdicts"]` is the last line of a gate that ended.

    If launches follow, the gate was resumed and interrupted.
    """

    verdicts: list[Verdict]
    named: Annotated[list[Difference], about("the packages that OLD and NEW name")]
    differences: Annotated[list[Difference], about("other packages that differ")]


class MovedValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value that is not equal in OLD and in NEW."""

    item: Annotated[str, about("the test, the function or the command")]
    name: Annotated[str, about("as the test named it, or the assertion with its place")]
    kind: Annotated[str, about("`within rounding`, `changed`, or `differs in OLD itself`")]
    message: Annotated[str, about("how far it moved, and how far OLD itself moves")]
    old: Value
    new: Value


class OfProgram(TypedDict, total=False):
    values: Annotated[
        list[MovedValue], about("Only of a program of the user: the values that are not equal in OLD and in NEW")
    ]


class GateFile(RecordHeader, OfSeveral, OfProgram):
    """Written to the file that `--json` names. The committed files in `docs/results/gates` are examples."""

    status: Annotated[
        str,
        about(
            "worst status of all verdicts: `BROKEN`, `MISSING`, `REGRESSED`, `INCONCLUSIVE` or `PASS`; `INCONCLUSIVE` "
            "in place of `PASS` if `together` has another exit code than 0"
        ),
    ]
    versions: Annotated[
        dict[str, dict[str, str | None]],
        about("for `old` and `new`: version or null by package; empty if no launch succeeded"),
    ]
    launches: Annotated[int, about("number of launches that gave a Run")]
    seconds: Annotated[float, about("duration of all launches, including parity", "s")]
    differences: Annotated[list[Difference], about("other packages that differ between the arms")]
    verdicts: list[Verdict]


ENTRIES: dict[str, type] = {
    "parity": ParityEntry,
    "model inspection": InspectionEntry,
    "model parity": ModelParityEntry,
    "verdicts": LastEntry,
    "accuracy": LaunchEntry,
    "behaviour": BehaviourEntry,
    **dict.fromkeys(KINDS, LaunchEntry),
}
