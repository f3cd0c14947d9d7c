"""Rung 11: do several devices compute the same from a batch as one device?

The reference is the same framework on one device. If a framework normalises with the statistics of each device, the
reference computes the batch in as many shards, so that the mathematics is the same.
"""

from dataclasses import replace
from datetime import date
from itertools import combinations

import msgspec

from stele.environments import Environment
from stele.measuring import answers, measure, progress, worker
from stele.measuring.answers import Numbers
from stele.measuring.settings import Settings
from stele.measuring.worker import WorkerError
from stele.parity import golden_numbers, ladder
from stele.parity.ladder import Finding, LadderResult
from stele_suite import tasks

RUNG = 11
OF_SUM = 0.05  # relative: a gradient so near to N times that of one device is a sum over N devices
OF_SCORE = 0.05  # absolute: more than the one pair of samples whose order may depend on rounding
STATISTICS = {
    "own": "batch statistics are those of each device",
    "all": "batch statistics are those of the whole batch",
    None: "",
}


def why_absent(environment: Environment, task: str, settings: Settings) -> str | None:
    """Return why an environment cannot train a Task on several devices, or None if it can."""
    where = {"device": settings.device, "precision": settings.precision}
    return environment.why_absent(task, "train", **where, devices=settings.devices)


def run_ladder(
    environment: Environment, task: str, settings: Settings, *, timeout: float = worker.TIMEOUT
) -> LadderResult:
    """Return the finding of rung 11. A worker that fails differs."""
    settings = replace(settings, deterministic=True)
    day = date.today().isoformat()
    versions: dict[str, str | None] = {}
    failure = None
    title = f"{environment.name} {task}: {settings.devices} devices and one"
    try:
        with progress.waiting(title):
            several, versions = ask(environment, task, settings, timeout)
            shards = settings.devices if several["statistics"] == "own" else 1
            single, _ = ask(environment, task, replace(settings, devices=1), timeout, shards)
        finding = compare(several, single, task=task, settings=settings)
    except WorkerError as error:
        failure = str(error)
        finding = Finding(RUNG, "differs", failure)
    return LadderResult([finding], versions, day, failure)


def ask(
    environment: Environment, task: str, settings: Settings, timeout: float, shards: int = 1
) -> tuple[Numbers, dict[str, str | None]]:
    """Return a worker's answer to ``parity``, phase "devices", and the versions of its framework."""
    with worker.launch(environment, settings, timeout=timeout) as live:
        versions = measure.configure(live, settings, shards=shards).versions
        numbers = live.ask(
            "parity",
            expected=answers.Devices,
            task=task,
            phase="devices",
            seed=golden_numbers.seed(task),
            form=environment.forms.get(task),
        )
        with live.checking("parity"):
            answers.check_sketches(numbers)
        return numbers, versions


def compare(several: Numbers, single: Numbers, *, task: str, settings: Settings) -> Finding:
    """Return the finding of answers from several devices and from one. The first difference names its cause."""
    ranks, count = several["ranks"], settings.devices
    if len(ranks) != count:
        return Finding(RUNG, "differs", f"{len(ranks)} devices took part, not {count}")
    for first, second in combinations(range(count), 2):
        if ranks[first]["samples"] == ranks[second]["samples"]:
            return Finding(
                RUNG,
                "differs",
                f"ranks {first} and {second} read the same samples. Divide the batch among the ranks.",
            )
    for rank in range(1, count):
        if ranks[rank]["digest"] != ranks[0]["digest"]:
            reason = f"after {len(several['losses'])} steps the parameters of rank {rank} differ from those of rank 0"
            return Finding(RUNG, "differs", f"{reason}. Synchronise the gradients.")
    return compare_numbers(several, single, task, settings)


def compare_numbers(several: Numbers, single: Numbers, task: str, settings: Settings) -> Finding:
    """Return the finding of gradients, losses and the score, with the tolerances of rungs 5 and 7, and OF_SCORE."""
    limits = {rung: ladder.limit(rung, task, settings.arithmetic, settings.device) for rung in (5, 7)}
    gradients = ladder.gradients(5, limits[5], several, single)
    if gradients.status == "differs":
        suffix = ""
        if is_sum(several["gradients"], single["gradients"], settings.devices):
            suffix = f". It is {settings.devices} times that of one device: the sum over the ranks, not their mean."
        return msgspec.structs.replace(gradients, rung=RUNG, message=gradients.message + suffix)
    losses = ladder.losses(7, limits[7], several, single)
    if losses.status != "agrees":
        return msgspec.structs.replace(losses, rung=RUNG)
    scores = compare_scores(several["score"], single["score"], tasks.score_name(task), settings.devices)
    if scores.status == "differs":
        return scores
    parts = [STATISTICS[several["statistics"]], scores.message]
    return msgspec.structs.replace(losses, rung=RUNG, message="; ".join(filter(None, parts)))


def compare_scores(several: float | None, single: float | None, name: str, devices: int) -> Finding:
    """Return the finding of the scores after training; without a message if the Task has none."""
    if several is None or single is None:
        return Finding(RUNG, "agrees")
    message = f"{name} {several:.3f} with {devices} devices, {single:.3f} with one"
    if abs(several - single) <= OF_SCORE:
        return Finding(RUNG, "agrees", message)
    reason = "Compare what inference reads on each device, such as running statistics."
    return Finding(RUNG, "differs", f"{message}; tolerance {OF_SCORE}. {reason}")


def is_sum(several: Numbers, single: Numbers, count: int) -> bool:
    """Return whether all gradients together are ``count`` times those of one device."""
    norms = [sum(sketch[0] ** 2 for sketch in gradients.values()) ** 0.5 for gradients in (several, single)]
    return abs(norms[0] - count * norms[1]) <= OF_SUM * count * norms[1]
