"""What bare.py, hand_written.py and peers/loop.py share: they make a step for every line that they read."""

from __future__ import annotations  # loop.py also runs in Python 3.8

import gc
import sys
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from stele_worker import frameworks, process


def configure(name: str, threads: str) -> Any:
    """Return a framework with the settings of the suite, on as many processors as there are threads."""
    process.limit_processors(int(threads))
    framework = frameworks.load(name)
    settings = {"device": "cpu", "precision": "fp32", "autotune": True, "deterministic": False, "seed": 0}
    framework.configure(framework.resolve({**settings, "threads": int(threads)}))
    return framework


def answer(framework: Any, step: Callable[..., Any], batches: Iterable[tuple[Any, ...]]) -> None:
    """Make a step with the next batch for every line, and print its duration in seconds.

    Garbage is collected between the steps, as the suite does. In a step, it would count for this side only.
    """
    remaining = iter(batches)
    gc.collect()
    gc.disable()
    while sys.stdin.readline():
        batch = next(remaining)
        framework.wait(batch)
        start = perf_counter()
        result = step(*batch)
        framework.wait(result)
        print(perf_counter() - start, flush=True)
        gc.collect(0)
