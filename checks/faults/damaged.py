"""Damaged files of every kind: truncated, corrupt, empty, and of a newer version."""

import json
import re
import shutil
from collections.abc import Callable
from typing import NamedTuple

from harness import GATE, ROOT
from toy import describe_build

RUN = {
    "when": "2026-01-02T03:04:05.678+00:00",
    "environment": "old",
    "label": "Old",
    "task": "cnn",
    "phase": "train",
    "scale": "quick",
    "settings": {
        **{"device": "cpu", "precision": "fp32", "threads": 1},
        **{"deterministic": False, "seed": 0, "malloc": "plain"},
    },
    "framework": {"import_seconds": 1.25, "versions": {"fake": "1.0"}, "flags": {}},
    "options": {},
    "machine": {"processor": "Abacus 3000", "processors": 2, "gpus": []},
    "data": {"origin": "official", "fingerprint": "0123456789abcdef"},
    "weights": "seeded",
    "steps": {"seconds": [0.5, *[0.010, 0.011, 0.012] * 10], "warmup": 1, "steady": True, "batch": 64},
    "memory": {"host": 2**20, "device": None},
    "learning": {"losses": [2.0] * 31, "accuracy": 0.36, "evaluated": 6400},
}
TABLE = ("table", "--steps")
SUITE = (
    *("--stele-suite", "--stele-framework", "old", "--stele-task", "resnet50", "--stele-scale", "smoke"),
    *("-k", "infer", "-p", "no:cacheprovider", "-q"),
)


def truncate(content):
    return content[: len(content) // 2]


def corrupt(content):
    middle = len(content) // 2
    return content[:middle] + b"\x00\xff\xfe}]" + content[middle + 5 :]


def empty(content):
    return b""


def renumber(content):
    """Return the content with the number of a newer schema."""
    return re.sub(
        rb'("schema"|"version"|repositoryformatversion|^version)( *[:=] *)\d+',
        rb"\g<1>\g<2>99",
        content,
        flags=re.M,
    )


DAMAGES = {
    "truncated": truncate,
    "corrupt": corrupt,
    "empty": empty,
    "newer": renumber,
}
UNNUMBERED = ("truncated", "corrupt", "empty")  # of a file without a schema number


class Kind(NamedTuple):
    """A kind of file: a function that makes one, a function that reads it, and the exit codes if it is damaged."""

    name: str
    make: Callable  # (project) -> path
    read: Callable  # (project) -> Result
    codes: tuple = (2,)
    recovers: bool = False  # whether the reader repairs or replaces the file
    damages: tuple = tuple(DAMAGES)


def damaged(kind, damage):
    """Return the fault: the file is damaged, read, restored and read again."""

    def fault(project):
        path = kind.make(project)
        content = path.read_bytes()
        changed = DAMAGES[damage](content)
        path.write_bytes(changed)
        result = project.observe(kind.read(project), *kind.codes)
        if result.code:
            project.require(path.name in result.output or kind.name in result.output, "the file is not named")
            project.require(path.read_bytes() == changed, "the damaged file was changed")
        if not kind.recovers:
            path.write_bytes(content)
        project.proceed(kind.read(project), 0)

    fault.__name__ = f"{kind.name.replace(' ', '_')}_{damage}"
    fault.__doc__ = f"{kind.name}: {'schema of a newer version' if damage == 'newer' else damage}."
    return fault


def make_run(project):
    path = project.work / ".stele/runs/20260102-old-cnn-train.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"schema": 1, "run": RUN}))
    return path


def make_record(project):
    project.run(*GATE)
    (path,) = project.work.glob(".stele/gates/*.jsonl")
    return path


def make_baseline(project):
    project.teach_parity("resnet50")
    project.run(*SUITE, "--stele-launches", "6", "--stele-save-baseline", module="pytest")
    project.run("baseline", "promote")
    (path,) = project.work.glob("baselines/*/*.json")
    return path


def read_baseline(project):
    options = ("--stele-launches", "6", "--stele-against-baseline")
    return project.run(*SUITE, *options, module="pytest")


def make_ledger(project):
    """Make a ledger with one release, and return its configuration."""
    describe_build(project)
    index = {"STELE_INDEX": str(project.wheels)}
    project.run("releases", "sync", "toy", **index)
    return project.cache / "ledger/config"


def read_ledger(project):
    return project.run("releases", "list", "toy")


def make_asv_result(project):
    """Make a result file of a release, as a measurement writes it."""
    make_ledger(project)
    code = (
        "from stele.releases import history\n"
        "values = {'step': {'gru infer tuned': 0.01}}\n"
        "print(history.save('toy-1.0', history.current_place(), values))\n"
    )
    (project.work / "save_result.py").write_text(code)
    result = project.run(module="save_result")
    return project.work / result.output.split()[-1]


def make_golden_numbers(project):
    """Copy the package, so that its golden numbers can be damaged, and let both workers return correct numbers."""
    source = project.folder / "source"
    for package in ("stele", "stele_suite", "stele_worker"):
        shutil.copytree(ROOT / "src" / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    project.teach_parity("gru")
    return source / "stele_suite/golden/gru.npz"


def read_golden_numbers(project):
    command = ("gate", "old", "new", "--task", "gru", "--metric", "parity", "--budget", "5m", "--no-wait")
    return project.run(*command, PYTHONPATH=str(project.folder / "source"))


def make_lock(project):
    describe_build(project)
    return project.descriptions / "toy.lock"


def read_lock(project):
    return project.run("env", "make", "toy")


KINDS = (
    Kind("Run", make_run, lambda project: project.run(*TABLE)),
    Kind("gate record", make_record, lambda project: project.run(*GATE, "--resume"), codes=(0, 2)),
    Kind("baseline", make_baseline, read_baseline, codes=(1, 2)),
    Kind("ledger", make_ledger, read_ledger, codes=(0, 2)),
    Kind("golden numbers", make_golden_numbers, read_golden_numbers, damages=UNNUMBERED),
    Kind("lock", make_lock, read_lock, damages=UNNUMBERED),
    Kind("asv result", make_asv_result, read_ledger, codes=(0,), recovers=True),
)


FAULTS = tuple(damaged(kind, damage) for kind in KINDS for damage in kind.damages)
