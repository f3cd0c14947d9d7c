"""What the gate has to do live: its targets on two processors, each as a gate whose result is known beforehand."""

from typing import Any, NamedTuple


class Target(NamedTuple):
    """A gate, and what is expected of it."""

    summary: str
    options: tuple[str, ...]
    expected: str  # a status, or NOT_PASS
    old: str = "healthy"  # "healthy" and "faulty" are PyTorch, with the worker of faulty.py
    new: str = "faulty"
    fault: str = "none"
    burn: float = 0.05  # the share by which the fault "burn" makes a step longer
    disturbance: str | None = None  # "bursts", "processor" or "clock"
    minutes: float | None = None  # the longest that a run may take
    passes: int | None = None  # the most that a run may take
    power: float = 1.0  # the share of runs that have to fulfil all this


NOT_PASS = "not PASS"
RELEASE = "jax==0.10.1"
LEAST_BUDGET = 10  # minutes: a run that is too slow shows by how much
SMALL = ("--task=gru", "--scale=study", "--accuracy-scale=smoke")


def slower(
    cell: str,
    burn: float,
    minutes: float,
    *options: str,
    expected: str = "REGRESSED",
    note: str = "",
    **fields: Any,
) -> Target:
    """Return the target for a slow-down of one cell, which has so many minutes."""
    task, phase = cell.split()
    select = (
        f"--task={task}",
        f"--phase={phase}",
        "--metric=step",
        f"--budget={max(minutes, LEAST_BUDGET):g}m",
    )
    summary = f"{100 * burn:g} % slower {cell}{note}"
    return Target(summary, (*select, *options), expected, fault="burn", burn=burn, minutes=minutes, **fields)


def undetected(disturbance: str, what: str) -> Target:
    return slower("gru infer", 0.1, 10, expected=NOT_PASS, disturbance=disturbance, note=f", while {what}")


def planted(summary: str, expected: str, fault: str, *options: str) -> Target:
    return Target(f"planted: {summary}", (*SMALL, *options), expected, fault=fault)


def to_itself(summary: str, minutes: float, *options: str) -> Target:
    """Return the target for a gate from a release to itself."""
    return Target(f"{RELEASE} to itself, {summary}", options, "PASS", RELEASE, RELEASE, minutes=minutes)


STEP = ("--phase=infer", "--metric=step")
TARGETS = {
    "same-cnn": to_itself("CNN", 10, "--task=cnn", "--budget=10m"),
    "10-gru-infer": slower("gru infer", 0.1, 2, passes=8),
    "10-gru-train": slower("gru train", 0.1, 2, passes=8),
    "10-cnn-train": slower("cnn train", 0.1, 4, passes=8),
    "3-cnn-train": slower("cnn train", 0.03, 6, power=0.8),
    "3-gru-infer": slower("gru infer", 0.03, 5, power=0.99),
    "3-gru-train": slower("gru train", 0.03, 5, power=0.99),
    "1.5-gru-infer": slower("gru infer", 0.015, 10, "--tolerance=1%", note=", tolerance 1 %", power=0.8),
    "1.5-gru-train": slower("gru train", 0.015, 10, "--tolerance=1%", note=", tolerance 1 %", power=0.8),
    "same-default": to_itself("default gate", 20, "--budget=20m"),
    "bursts": undetected("bursts", "a foreign process starts and stops at random"),
    "processor": undetected("processor", "a processor is taken away"),
    "clock": undetected("clock", "the wall clock jumps"),
    "burn": planted("5 % of extra work inside each step", "REGRESSED", "burn", *STEP),
    "hoard": planted("twice the memory", "REGRESSED", "hoard", "--phase=infer", "--metric=host-memory"),
    "forget": planted("three points of accuracy less", "REGRESSED", "forget", "--phase=train", "--metric=accuracy"),
    "import": planted("a framework that does not import", "BROKEN", "import", *STEP),
    "hang": planted("a step that never ends", "BROKEN", "hang", *STEP, "--worker-timeout=10"),
    "none": planted("nothing", "PASS", "none", "--phase=infer", "--metric=step,host-memory"),
}
