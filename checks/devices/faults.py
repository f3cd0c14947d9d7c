"""Plant faults of data parallelism into frameworks, and show what rung 11 of the ladder says about each.

    python -m checks devices/faults [--framework torch ...] [--task gru] [--devices 2]

Prints a line for each fault. Exits with 1 if a fault is not detected, or if its message does not name it.
"""

import argparse
import dataclasses
import sys
from pathlib import Path

from stele import environments
from stele.measuring.settings import Settings
from stele.parity import devices, ladder

WORKER = Path(__file__).with_name("faulty_worker.py")
# fault -> what the message must contain; None: all devices compute the same
MESSAGES = {
    "none": None,
    "unscaled gradient": "the sum over the ranks, not their mean",
    "unsynchronised gradient": "Synchronise the gradients",
    "same samples": "ranks 0 and 1 read the same samples",
    "stale statistics": "AUC",
    "killed rank": "rank 1",
    "communication left out": "Synchronise the gradients",
}
OF_EVERY_DEVICE = ("none", "unscaled gradient", "unsynchronised gradient", "same samples")
# environment -> the faults that are planted
FAULTS = {
    "torch": (*OF_EVERY_DEVICE, "stale statistics", "killed rank", "communication left out"),
    "jax": (*OF_EVERY_DEVICE, "communication left out"),
    "chainer": (*OF_EVERY_DEVICE, "communication left out"),
    "keras-torch": (*OF_EVERY_DEVICE, "communication left out"),
    "mxnet-gluon": OF_EVERY_DEVICE,
    "paddle": (*OF_EVERY_DEVICE, "communication left out"),
    "tensorflow": (*OF_EVERY_DEVICE, "communication left out"),
}
TASKS = {"stale statistics": "densenet121"}  # faults that only this task shows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--framework", action="append", choices=FAULTS, help="default: all of them")
    parser.add_argument("--task", default="gru", help="default: %(default)s, which every framework has")
    parser.add_argument("--devices", type=int, default=2)
    arguments = parser.parse_args()
    settings = Settings(device="cpu", threads=1, devices=arguments.devices)
    missed = [
        fault
        for name in arguments.framework or FAULTS
        for fault in FAULTS[name]
        if not is_named(name, fault, TASKS.get(fault, arguments.task), settings)
    ]
    return int(bool(missed))


def is_named(name: str, fault: str, task: str, settings: Settings) -> bool:
    """Return whether the finding of a fault in an environment names it, and print the finding."""
    right = environments.load(name)
    command = ("{python}", str(WORKER), right.framework, fault)
    [finding] = devices.run_ladder(dataclasses.replace(right, command=command), task, settings).findings
    expected = MESSAGES[fault]
    named = finding.status == "agrees" if expected is None else expected in finding.message
    text = ladder.message(finding) if finding.status == "differs" else "agrees"
    print(f"{'ok' if named else 'NOT NAMED'}  {name}, {fault}: {text}", flush=True)
    return named


if __name__ == "__main__":
    sys.exit(main())
