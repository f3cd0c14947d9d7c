"""The top of a report, in words that a person understands who has never seen Stele."""

import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from stele import subjects, text
from stele.environments import packages
from stele.environments.packages import Difference
from stele.gate import judgement
from stele.gate.advice import describe_load
from stele.gate.entries import Together, Verdict
from stele.gate.metrics import METRICS, MOST_GROWTH
from stele.gate.outcome import Outcome, not_judged, status_with
from stele.gate.verdict import seconds_needed
from stele.releases import frameworks
from stele.report.content import Headline, Remedy
from stele.report.gate import SAME, continuation, larger_budget
from stele_suite import tasks

PHASES = {"train": "training", "infer": "inference", "all": "all phases"}
# metric: what grew, and the verb
GROWN = {
    "step": ("a step of {} takes", "longer"),
    "first-step": ("the first step of {} takes", "longer"),
    "import": ("the import of the framework takes", "longer"),
    "host-memory": ("{} uses", "more memory"),
    "device-memory": ("{} uses", "more memory on the device"),
    "latency": ("one sample in {} takes", "longer"),
    "latency-p99": ("the slowest samples in {} take", "longer"),
    "throughput": ("a step of {} in a row of steps takes", "longer"),
    "dispatch": ("the call of a step of {} takes", "longer"),
    "first-step-cached": ("the first step of {} with filled caches takes", "longer"),
    "first-step-new-batch": ("the first step of {} with another batch takes", "longer"),
    "compilations": ("{} compiles", "more often"),
    "overhead": ("a step of {} without samples takes", "longer"),
    "idle": ("a step of {} is idle", "more of its time"),
    "loader": ("a batch of the loader takes", "longer"),
    "fed-step": ("a step of {} with the loader takes", "longer"),
    "peak-memory": ("{} uses", "more memory"),
}
# after "3.2 times"
FACTORS = {"longer": "as long", "more often": "as often"}
# causes that are shown at the top
MOST = 4


def of_gates(gates: Sequence[Outcome]) -> Headline:
    """Return the summary of the gate with the worst status; the others are in the table of verdicts."""
    worst = min(gates, key=lambda gate: judgement.STATUSES.index(status_of(gate)))
    summary = of_gate(worst)
    if len(gates) == 1:
        return summary
    counts = [status_of(gate) for gate in gates]
    statuses = ", ".join(f"{counts.count(status)} {status}" for status in judgement.STATUSES if status in counts)
    return summary._replace(
        title=f"{len(gates)} gates: {statuses}", sentence=f"The worst of {len(gates)} gates: {summary.sentence}"
    )


def of_gate(gate: Outcome) -> Headline:
    status = own_status(gate)
    headline = Headline(
        status,
        f"{gate.header['old']} to {gate.header['new']}",
        sentence(gate, status),
        list(causes(gate, status)),
        list(remedies(gate, status)),
    )
    return headline if gate.together is None else with_others(headline, status_of(gate), gate.together)


def with_others(headline: Headline, status: str, whole: Together) -> Headline:
    """Return the summary of a gate with the outcome of the command, which gates more."""
    summary = headline._replace(causes=[*whole.lines, *headline.causes])
    if status == headline.status:
        return summary._replace(sentence=f"{headline.sentence} {whole.sentence}")
    return summary._replace(
        status=status,
        sentence=f"{whole.sentence} This gate found nothing that became worse by more than is allowed.",
        remedies=[Remedy("Look at the other changes first: they are listed above.")],
    )


def own_status(gate: Outcome) -> str:
    return judgement.overall([verdict.status for verdict in gate.verdicts])


def status_of(gate: Outcome) -> str:
    """Return the status of a gate, which is no PASS if the command gates more and does not pass."""
    return status_with(own_status(gate), gate.together)


def sentence(gate: Outcome, status: str) -> str:
    """Return the verdict and its reason in one sentence."""
    old, new = gate.header["old"], gate.header["new"]
    worst = [verdict for verdict in gate.verdicts if verdict.status == status]
    if status == "REGRESSED":
        return f"Do not upgrade yet: with {new}, {growth(most_grown(worst))} with {old}."
    if status == "BROKEN":
        return f"Do not upgrade: {new} fails, or computes something different from {old}."
    if status == "MISSING":
        cells = ", ".join(dict.fromkeys(map(cell, worst)))
        return f"Do not upgrade yet: {new} cannot run {cells}, which {old} can."
    if status == "INCONCLUSIVE":
        return (
            f"The upgrade from {old} to {new} has no verdict yet: "
            f"{len(worst)} of {len(gate.verdicts)} checks have no result. Do not treat this as a pass."
        )
    if old == new:
        return f"{SAME} Nothing that was judged became worse by more than is allowed."
    equal = any(verdict.metric == "parity" for verdict in gate.verdicts)
    same = ", and both compute the same" if equal else ""
    missing = not_judged(gate.header)
    rest = f" Not judged: {', '.join(missing)}." if missing else ""
    return f"From {old} to {new}, nothing that was judged became worse by more than is allowed{same}.{rest}"


def growth(verdict: Verdict) -> str:
    """Return ``a step of cnn training takes 27.4 % longer (98 % interval 22.1 to 32.7 %) than``, or ``... as``."""
    if verdict.ratio is None or verdict.metric not in GROWN:
        return f"{verdict.metric} of {cell(verdict)} is worse than"
    what, how = GROWN[verdict.metric]
    as_factor = verdict.ratio.middle >= text.FACTOR
    low, middle, high = (None if ratio is None else grown(ratio, as_factor=as_factor) for ratio in verdict.ratio)
    unit, how = ("times", FACTORS.get(how, how.replace("more", "as much", 1))) if as_factor else ("%", how)
    interval = "" if low is None or high is None else f" (98 % interval {low} to {high} {unit})"
    return f"{what.format(cell(verdict))} {middle} {unit} {how}{interval} {'as' if as_factor else 'than'}"


def grown(ratio: float, *, as_factor: bool) -> str:
    """Return a growth in per cent, or as a factor."""
    return f"{ratio:.1f}" if as_factor else f"{100 * (ratio - 1):.1f}"


def cell(verdict: Verdict) -> str:
    return f"{verdict.task} {PHASES.get(verdict.phase, verdict.phase)}"


def causes(gate: Outcome, status: str) -> Iterator[str]:
    """Yield why: the checks that decided, then what differs between OLD and NEW."""
    worst = [verdict for verdict in gate.verdicts if verdict.status == status and status != "PASS"]
    for verdict in worst[:MOST]:
        yield f"{cell(verdict)}, {verdict.metric}: {first_line(verdict.message)}"
    if len(worst) > MOST:
        yield f"{len(worst) - MOST} more checks are {status}; the table lists them."
    if status == "PASS":
        checks = "The only check" if len(gate.verdicts) == 1 else f"All {len(gate.verdicts)} checks"
        launched = f", in {text.counted(gate.launches, 'launch')} of fresh processes" if gate.launches else ""
        yield f"{checks} passed{launched}."
    pairs = [package for package in (*gate.named, *gate.differences) if package.old != package.new]
    differences = packages.shortened(pairs, "a table lists them") or ", ".join(version_changes(gate))
    yield (f"OLD and NEW differ in {differences}." if differences else "No package differs, as far as recorded.")
    load = describe_load([pass_.conditions for pass_ in gate.passes if pass_.conditions is not None])
    if load is not None:
        yield load
    if not gate.ended:
        yield "The gate did not end. The verdicts are on its launches so far."


def first_line(text: str) -> str:
    return text.partition("\n")[0]


def version_changes(gate: Outcome) -> list[str]:
    """Return the versions that the frameworks report differently."""
    old, new = (gate.versions.get(arm, {}) for arm in ("old", "new"))
    return [f"{name} {old[name]} → {new[name]}" for name in old if name in new and old[name] != new[name]]


def remedies(gate: Outcome, status: str) -> Iterator[Remedy]:
    """Yield what to do next."""
    if status in judgement.AGAINST:
        yield Remedy(f"Stay with {gate.header['old']} for now.")
    if status == "REGRESSED":
        yield from accept(gate)
        yield from bisection(gate)
    elif status == "BROKEN":
        yield Remedy("The messages above and the parity ladder below name the first quantity that differs.")
        yield Remedy("List the defaults that changed:", shlex.join(["stele", "defaults", *arms(gate)]))
    elif status == "MISSING":
        yield Remedy("Gate only what both have with --task and --phase, or wait for a release that has it.")
    elif status == "INCONCLUSIVE":
        if any(verdict.metric == "control" and verdict.status == status for verdict in gate.verdicts):
            yield Remedy("Use a quieter machine. To see what disturbs this one:", "stele calibrate")
        needs = seconds_needed(gate.verdicts)
        if needs is not None or not gate.ended:
            yield Remedy("Continue the measurement, with the options of the first run:", resume(gate, needs))
        else:
            yield Remedy("A larger budget does not help. Change what the reasons above name.")
    elif gate.header["old"] == gate.header["new"]:
        yield Remedy("Name the release that you want to upgrade to as NEW.")
    elif missing := not_judged(gate.header):
        yield Remedy(f"Before you upgrade, judge the rest, too: {', '.join(missing)}. --phase and --metric select it.")
    else:
        yield Remedy(f"Upgrade to {gate.header['new']}.")


def accept(gate: Outcome) -> Iterator[Remedy]:
    """Yield the options that accept the largest growth."""
    verdict = most_grown(gate.verdicts)
    if verdict.ratio is not None and verdict.ratio.high is not None:
        growth = math.ceil(round(100 * (verdict.ratio.high - 1), 6))
        if growth > MOST_GROWTH:
            return
        options = [f"--tolerance {verdict.metric}={growth}%"]
        if growth > 100 * gate.header["metrics"].get(verdict.metric, math.inf):
            options.append(f"--margin {verdict.metric}={growth}%")
        yield Remedy("If this growth is acceptable, gate again with these options:", " ".join(options))


def bisection(gate: Outcome) -> Iterator[Remedy]:
    """Yield the command that names the release which is worse, if one followed package has another release."""
    verdict = most_grown(gate.verdicts)
    named = gate.named or list(filter(None, [pinned(gate)]))
    upgrades = [package for package in named if is_upgrade(package)]
    if len(upgrades) == 1 and verdict.task in tasks.NAMES and verdict.metric in [metric.name for metric in METRICS]:
        [package] = upgrades
        cell = ["--task", verdict.task, "--phase", verdict.phase, "--metric", verdict.metric]
        command = ["stele", "bisect", package.name, str(package.old), str(package.new), *cell]
        yield Remedy("If there are releases between the two, name the one that is worse:", shlex.join(command))


def is_upgrade(package: Difference) -> bool:
    """Return whether a package, of which ``stele bisect`` knows the releases, has another one in each arm."""
    return (
        package.name in frameworks.ENVIRONMENTS
        and None not in (package.old, package.new)
        and package.old != package.new
    )


def pinned(gate: Outcome) -> Difference | None:
    """Return the package that OLD and NEW pin, if each is one requirement such as ``jax==0.10.2``."""
    old, new = (re.fullmatch(r"([\w.-]+)==([\w.+-]+)", gate.header[arm]) for arm in ("old", "new"))
    if old is None or new is None or old[1] != new[1]:
        return None
    return Difference(old[1], old[2], new[2])


def most_grown(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict REGRESSED with the largest ratio."""
    regressed = [verdict for verdict in verdicts if verdict.status == "REGRESSED"]
    return max(regressed, key=lambda verdict: verdict.ratio.middle if verdict.ratio else 0.0)


def arms(gate: Outcome) -> list[str]:
    return [gate.header["old"], gate.header["new"]]


def resume(gate: Outcome, needs: float | None) -> str:
    """Return the command that continues the gate for ``needs`` seconds; with twice the time if they are unknown."""
    typed = gate.header.get("command")
    words = (
        list(map(str, typed))
        if isinstance(typed, list)
        else ["gate", *arms(gate), *subjects.of_header(gate.header).words]
    )
    budget = larger_budget(gate.seconds, gate.seconds if needs is None else needs)
    return continuation(words, budget, record=gate.source if gate.source.endswith(".jsonl") else None)
