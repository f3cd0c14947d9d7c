"""Advice on how to make a machine quieter, from its facts and from the conditions of the launches on it."""

from collections.abc import Iterator, Sequence
from statistics import mean

from stele.measuring import machine
from stele.measuring.conditions import Conditions
from stele.measuring.machine import Machine
from stele.measuring.settings import Settings

MAX_LOAD = 0.05  # share of the processors
BOOST = "/sys/devices/system/cpu/cpufreq/boost", "1"
TURBO = "/sys/devices/system/cpu/intel_pstate/no_turbo", "0"
SIBLINGS = "/sys/devices/system/cpu/smt/active"


def advise(facts: Machine, conditions: Sequence[Conditions], settings: Settings) -> Iterator[str]:
    """Yield one message for each setting that can be improved; none if there is nothing to improve."""
    yield from advise_on_load(conditions)
    yield from advise_on_clocks(facts)
    if settings.threads > 1:
        yield f"{settings.threads} threads wait for each other. Use --threads 1: it varies less."
    elif (facts.processors or 2) == 1:
        yield "One processor runs the measurement and everything else. Use a machine with two or more."
    if settings.malloc == "plain":
        yield (
            "The allocator returns memory to the system and requests it again. --malloc steady avoids this noise, but "
            "may hide a change of what is allocated."
        )
    elif "[never]" in (facts.huge_pages or ""):
        yield (
            "Transparent huge pages are off, but --malloc steady needs them. Enable them with: "
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        )
    if any(condition.gpu and condition.excluded for condition in conditions):
        yield "The GPU was throttled. Cool it, or lock its clocks with: nvidia-smi --lock-gpu-clocks"


def describe_load(conditions: Sequence[Conditions]) -> str | None:
    """Return what others took of the passes with these conditions; None if the machine was quiet."""
    foreign = [condition.foreign for condition in conditions if condition.busy and condition.foreign is not None]
    stolen = [condition.steal for condition in conditions if condition.stolen and condition.steal is not None]
    shares = {"Other processes used": foreign, "The hypervisor took": stolen}
    lines = [
        f"{who} {mean(values):.0%} of the processors in {len(values)} of {len(conditions)} passes."
        for who, values in shares.items()
        if values
    ]
    return " ".join([*lines, "A busy machine needs more passes for a verdict."]) if lines else None


def advise_on_load(conditions: Sequence[Conditions]) -> Iterator[str]:
    foreign = mean([condition.foreign for condition in conditions if condition.foreign is not None] or [0.0])
    steal = mean([condition.steal for condition in conditions if condition.steal is not None] or [0.0])
    if foreign > MAX_LOAD:
        yield f"Other processes used {foreign:.0%} of the processors. Find them with top, and stop them."
    if steal > MAX_LOAD / 5:
        yield f"The hypervisor gave {steal:.1%} of the processors to other machines. Use a dedicated host."


def advise_on_clocks(facts: Machine) -> Iterator[str]:
    if facts.governor not in (None, "performance"):
        yield (
            f"The frequency governor is {facts.governor}. Change it with: cpupower frequency-set --governor performance"
        )
    if any(machine.read_text(path) == on for path, on in (BOOST, TURBO)):
        yield "Turbo is on, so the clock frequency depends on the temperature. Switch it off while you measure."
    if machine.read_text(SIBLINGS) == "1":
        yield "Two hardware threads share each core. Pin to one thread of each core with taskset; leave the other idle."
