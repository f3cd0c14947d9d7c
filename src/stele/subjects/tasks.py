"""The built-in tasks, in the recipes of Stele."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from stele.environments import arms
from stele.environments.arms import Needs
from stele.measuring import measure
from stele.measuring.measure import Plan
from stele.measuring.run import NO_OPTIONS, Options
from stele.subjects.base import GOLDEN_NUMBERS, Cell, Say, Subject
from stele_suite import tasks


@dataclass(frozen=True)
class Tasks(Subject):
    """Some of the built-in tasks."""

    selected: tuple[str, ...] = tasks.NAMES

    reference = GOLDEN_NUMBERS
    accuracy_remedy = "Name another task"

    @property
    def needs(self) -> Needs:
        return arms.TASKS

    @property
    def names(self) -> tuple[str, ...]:
        return self.selected

    def data(self, names: Iterable[str]) -> dict[str, str | None]:
        every = {name: measure.inputs(name)[0] for name in names}
        return {
            f"the data of {name}": f"{fields['data_origin'].text} {fields.get('weights_origin', 'seeded')}"
            for name, fields in every.items()
        }

    def announce(self, names: Iterable[str], say: Say) -> None:
        measure.announce_inputs(names, say)

    def unmeasured(self, phases: Collection[str]) -> list[str]:
        # the user names the phases of a task
        return []

    def scales(self, name: str) -> tuple[str, ...] | None:
        return tuple(tasks.load(name).SCALES)

    def target_accuracy(self, name: str, scale: str) -> float | None:
        target: float | None = tasks.target(name, scale)
        return target

    def has_accuracy(self, name: str) -> bool:
        return tasks.make(name, "paper").data is not None

    def parity_phase(self, phases: Collection[str]) -> str:
        return "all"

    def plan(self, cell: Cell, scale: str, options: Options = NO_OPTIONS) -> Plan:
        fields, _ = measure.inputs(cell.task)
        return Plan(task=cell.task, phase=cell.phase, scale=scale, options=options, **fields)
