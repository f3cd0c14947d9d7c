"""What to change about a machine so that it sees more: from what is known of it and of the launches on it."""

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from stele.gate.conditions import Conditions
from stele.measuring import machine
from stele.measuring.settings import Settings

BUSY = 0.05  # share of the processors
FROM_BOOST = "/sys/devices/system/cpu/cpufreq/boost", "1"
FROM_TURBO = "/sys/devices/system/cpu/intel_pstate/no_turbo", "0"
SIBLINGS = "/sys/devices/system/cpu/smt/active"


def advice(facts: dict[str, Any], conditions: Sequence[Conditions], settings: Settings) -> Iterator[str]:
    """A message for each thing that could be better; none where all is well."""
    yield from neighbours(conditions)
    yield from clocks(facts)
    if settings.threads > 1:
        yield f"{settings.threads} threads wait for each other: --threads 1 is steadier, and tells as much."
    elif (facts["processors"] or 2) == 1:
        yield "One processor has to do the measuring and all else: take a machine with two or more."
    if settings.malloc == "plain":
        yield "The allocator gives memory back and asks for it again: --malloc steady takes that noise away."
    elif "[never]" in (facts["huge_pages"] or ""):
        yield (
            "Transparent huge pages are off, and --malloc steady lives on them: "
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        )
    if any(one.gpu and one.excluded for one in conditions):
        yield "The GPU was throttled: cool it, or lock its clocks with nvidia-smi --lock-gpu-clocks."


def neighbours(conditions: Sequence[Conditions]) -> Iterator[str]:
    foreign = mean([one.foreign for one in conditions if one.foreign is not None] or [0.0])
    steal = mean([one.steal for one in conditions if one.steal is not None] or [0.0])
    if foreign > BUSY:
        yield f"Other processes took {foreign:.0%} of the processors: find them with top, and stop them."
    if steal > BUSY / 5:
        yield f"The hypervisor gave {steal:.1%} of the processors to others: take a dedicated host."


def clocks(facts: dict[str, Any]) -> Iterator[str]:
    if facts["governor"] not in (None, "performance"):
        yield f"The frequency governor is {facts['governor']}: cpupower frequency-set --governor performance"
    if any(machine.text(path) == on for path, on in (FROM_BOOST, FROM_TURBO)):
        yield "Turbo is on, and its clock depends on heat: switch it off while measuring."
    if machine.text(SIBLINGS) == "1":
        yield "Two threads share a core: pin to one of each pair with taskset, and leave its sibling idle."
