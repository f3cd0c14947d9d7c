"""A Run that was never measured, and Runs that differ from it."""

from typing import Any

from stele import schema
from stele.measuring.machine import Machine
from stele.measuring.run import (
    Framework,
    Learning,
    Memory,
    Options,
    Origin,
    Run,
    Steps,
    Warmup,
)
from stele.measuring.settings import Settings

MACHINE = Machine(
    name="abacus",
    system="Linux 6.1",
    architecture="x86_64",
    processor="Abacus 3000",
    processors=2,
    memory=2**34,
    load=0.1,
)


def make_run(**changes: Any) -> Run:
    """Return a Run as on a quiet machine, with these changes: a slow first step, then 10, 11 and 12 ms, repeated."""
    run = Run(
        when="2026-01-02T03:04:05.678+00:00",
        environment="torch",
        label="PyTorch",
        task="cnn",
        phase="train",
        scale="quick",
        settings=Settings(device="cpu", threads=2),
        options=Options(warmup=Warmup(window=5, tolerance=0.05, most=20)),
        framework=Framework(import_seconds=1.25, versions={"torch": "2.13.0", "cuda": None}, flags={"threads": 2}),
        machine=MACHINE,
        data=Origin(origin="official", fingerprint="0123456789abcdef"),
        weights="seeded",
        steps=Steps(seconds=(0.5, *[0.010, 0.011, 0.012] * 10), warmup=1, steady=True, batch=64),
        memory=Memory(host=300 * 2**20, device=None),
        learning=Learning(losses=(2.3, *[2.0] * 30), accuracy=0.36, evaluated=6400),
        content={"code": "1"},
    )
    return changed(run, **changes)


def changed(run: Run, **changes: Any) -> Run:
    """Return a Run with other values. A dict changes a part of it: ``changed(run, steps={"batch": 4})``."""
    values = schema.to_json(run)
    for name, value in changes.items():
        is_part = isinstance(value, dict) and name != "content"
        values[name] = merged(values.get(name), schema.to_json(value)) if is_part else schema.to_json(value)
    return schema.convert(values, Run)


def merged(values: Any, changes: Any) -> Any:
    """Return JSON in which objects have the keys of both, with the values of the second."""
    if not isinstance(values, dict) or not isinstance(changes, dict):
        return changes
    return values | {name: merged(values.get(name), value) for name, value in changes.items()}


def to_training(run: Run, **changes: Any) -> Run:
    """Return a Run of two epochs that reach an accuracy, with these changes."""
    epochs = {
        "accuracies": [0.5, 0.6],
        "evaluation_seconds": [1.0, 1.0],
        "compile_seconds": 0.0,
        "data_seconds": 0.5,
        "elapsed": 7.0,
    }
    training = {
        "phase": "time-to-accuracy",
        "steps": {"seconds": [2.0, 2.0], "warmup": 0},
        "learning": {"losses": [2.0, 1.0], "accuracy": 0.6},
        "epochs": epochs,
    }
    return changed(run, **merged(training, schema.to_json(changes)))
