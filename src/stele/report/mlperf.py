"""A training as the log lines of MLPerf, written with the package mlperf-logging (extra ``mlperf``).

Compilation comes before ``run_start``, as in MLPerf, though the frameworks compile in the first step: the times are
those of the clock, placed one after the other, and end when the Run ended. The benchmark is none of MLPerf's.
"""

import io
import logging
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import stele
from stele import files
from stele.errors import SteleError
from stele.measuring.run import Run
from stele.report.dawnbench import hardware
from stele.text import slug
from stele.time_to_accuracy.summary import COMPILE_BUDGET
from stele_suite import tasks

START, END, POINT = "INTERVAL_START", "INTERVAL_END", "POINT_IN_TIME"


class Event(NamedTuple):
    # since the start of the initialisation
    seconds: float
    kind: str
    key: str
    value: Any = None
    metadata: Mapping[str, Any] = MappingProxyType({})


def write(folder: Path, runs: list[Run], target: float) -> None:
    """Write a log for each training that was not continued. Raises SteleError without the package mlperf-logging."""
    for run in runs:
        if not run.continued:
            name = slug(f"{run.environment}-{run.task}-{run.scale}") + f"-seed{run.settings.seed}.txt"
            write_log(folder / name, run, target)


def write_log(path: Path, run: Run, target: float) -> None:
    mllog = load_package()
    text, logger = io.StringIO(), logging.Logger("stele.mlperf")
    logger.addHandler(logging.StreamHandler(text))
    writer = mllog.MLLogger(logger, root_dir=re.escape(str(Path(stele.__file__).parent)))
    assert run.epochs is not None
    began = datetime.fromisoformat(run.when).timestamp() - run.epochs.elapsed
    write_event = {START: writer.start, END: writer.end, POINT: writer.event}
    for event in events(run, target):
        time = round(1000 * (began + event.seconds))
        write_event[event.kind](event.key, value=event.value, metadata=dict(event.metadata), time_ms=time)
    files.write_output_text(path, text.getvalue())


def load_package() -> Any:
    try:
        from mlperf_logging.mllog import mllog
    except ImportError:
        raise SteleError("--mlperf needs a package. Install it with: pip install mlperf-logging") from None
    return mllog


def events(run: Run, target: float) -> Iterator[Event]:
    """Yield the events of a training in their order."""
    assert run.epochs is not None and run.learning.accuracy is not None
    yield Event(0.0, POINT, "cache_clear", value=True)
    yield Event(0.0, START, "init_start")
    for key, value in facts(run).items():
        yield Event(0.0, POINT, key, value)
    start = min(run.epochs.compile_seconds, COMPILE_BUDGET)
    yield Event(start, END, "init_stop")
    yield Event(start, START, "run_start")
    yield from epoch_events(run, start)
    status = {"status": "success" if run.learning.accuracy >= target else "aborted"}
    yield Event(run.epochs.elapsed, END, "run_stop", metadata=status)


def facts(run: Run) -> dict[str, Any]:
    return {
        "submission_benchmark": run.task,
        "submission_org": "stele",
        "submission_division": "open" if run.options.changes else "closed",
        "submission_status": "research",
        "submission_platform": hardware(run),
        "seed": run.settings.seed,
        "global_batch_size": run.steps.batch,
        "gradient_accumulation_steps": 1,
        "train_samples": tasks.make(run.task, run.scale).train,
        "eval_samples": run.learning.evaluated,
    }


def epoch_events(run: Run, start: float) -> Iterator[Event]:
    """Yield the events of each epoch and its evaluation; ``start`` is when the data was accessed first."""
    assert run.epochs is not None
    time = start + run.epochs.data_seconds
    for number, (seconds, evaluation, accuracy) in enumerate(
        zip(run.steps.seconds, run.epochs.evaluation_seconds, run.epochs.accuracies, strict=True), 1
    ):
        epoch = {"epoch_num": number}
        yield Event(time, START, "epoch_start", metadata=epoch)
        yield Event(time + seconds, END, "epoch_stop", metadata=epoch)
        yield Event(time + seconds, START, "eval_start", metadata=epoch)
        time += seconds + evaluation
        yield Event(time, POINT, "eval_accuracy", accuracy, epoch)
        yield Event(time, END, "eval_stop", metadata=epoch)
