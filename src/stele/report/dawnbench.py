"""A training in DAWNBench's formats: https://github.com/stanford-futuredata/dawn-bench-entries.

DAWNBench reads the first epoch that reaches the target. Stele fixes the number of epochs in advance, so the last line
decides.
"""

import json
from itertools import accumulate
from pathlib import Path

from stele import files
from stele.errors import SteleError
from stele.measuring.run import Run
from stele.text import slug, versions
from stele.time_to_accuracy.prices import HOUR, Price

VERSION, AUTHOR = "v1.0", "stele"


def write(folder: Path, runs: list[Run], price: Price | None) -> None:
    """Write a TSV and a JSON file for each training that was not continued."""
    for run in runs:
        if not run.continued:
            name = folder / slug(file_name(run))
            files.write_output_text(name.with_name(name.name + ".tsv"), to_tsv(run))
            files.write_output_text(name.with_name(name.name + ".json"), to_json(run, price))


def file_name(run: Run) -> str:
    """Return ``author_model_hardware_framework``; the seed is a part of the model."""
    return f"{AUTHOR}_{run.task}-seed{run.settings.seed}_{hardware(run)}_{run.environment}"


def hardware(run: Run) -> str:
    gpus = [gpu["name"] for gpu in run.machine.gpus[:1] if run.settings.device == "cuda"]
    return "".join(gpus) or f"{run.settings.threads} threads of {run.machine.processor or 'a processor'}"


def to_tsv(run: Run) -> str:
    """Return ``epoch hours top1Accuracy`` at the end of every epoch; hours without evaluation and compilation."""
    if run.epochs is None or run.continued:
        raise SteleError("A resumed training has no total time, so no DAWNBench file can be written.")
    ends = list(accumulate(run.steps.seconds, initial=run.epochs.data_seconds))[1:]
    lines = [
        f"{epoch}\t{seconds / HOUR!r}\t{100 * accuracy!r}"
        for epoch, (seconds, accuracy) in enumerate(zip(ends, run.epochs.accuracies, strict=True), 1)
    ]
    return "\n".join(["epoch\thours\ttop1Accuracy", *lines]) + "\n"


def to_json(run: Run, price: Price | None) -> str:
    facts = {
        "version": VERSION,
        "author": AUTHOR,
        "authorEmail": "",
        "framework": run.label,
        "model": run.task,
        "hardware": hardware(run),
        **({} if price is None else {"costPerHour": price.per_hour}),
        "timestamp": run.when[:10],
        "misc": {
            "versions": versions(run.framework.versions),
            "scale": run.scale,
            "division": run.division,
            "seed": run.settings.seed,
            "precision": run.settings.precision,
            "batch": run.steps.batch,
        },
    }
    return json.dumps(facts, indent=1) + "\n"
