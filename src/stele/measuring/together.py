"""Launches at the same time, for what is not timed."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from stele.measuring import processors, worker

Returned = TypeVar("Returned")
LOOK = 0.05  # seconds between two looks whether threads have ended


def together(calls: Sequence[tuple[Callable[[], Returned], Sequence[int] | None]]) -> list[Returned]:
    """Call functions at the same time, and return what they return, in their order.

    Each is beside the processors to which its launches are pinned; None for all. If one raises, or the user interrupts,
    the workers of all end.
    """

    def pinned(call: Callable[[], Returned], numbers: Sequence[int] | None) -> Returned:
        with processors.pinned(numbers):
            return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        futures = [threads.submit(pinned, *call) for call in calls]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            while wait(futures, LOOK).not_done:
                worker.end_all()
            raise
    return [future.result() for future in futures]
