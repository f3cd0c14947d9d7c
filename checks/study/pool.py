"""Passes of one release, recorded once: eleven cells, on a quiet machine and beside foreign processes.

All four launches of a pass are of the same release. They are launched as a gate launches them. Each cell has a file in
each condition, .stele/study/<condition>/<cell>.jsonl; an interrupted study continues it.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import foreign

from stele import environments
from stele.environments import builds
from stele.gate import failures, record, trial
from stele.gate.gate import Gate
from stele.gate.metrics import LONG, METRICS
from stele.gate.state import Probe, Result, results_in
from stele.gate.timing import measure_next
from stele.gate.trial import PARALLEL, Trial
from stele.measuring import lock
from stele.measuring.settings import Settings
from stele.subjects import Cell, Tasks
from stele.subjects.model import inputs, inspection, spec
from stele.text import slug

FOLDER = Path(".stele/study")
PLAIN = "plain"  # quiet, with the C library's allocator as it is; the other conditions have the steady allocator
CONDITIONS = ("quiet", foreign.BUSY, foreign.BURSTS, PLAIN)


class Subject(NamedTuple):
    """What is launched: a cell of an environment."""

    environment: str
    task: str
    phase: str
    scale: str

    def __str__(self) -> str:
        return f"{self.environment} {self.task} {self.phase}"


# launches of a second or two, and launches as a user's gate has them
SMALL = tuple(
    Subject(name, task, "infer", "study")
    for name, task in (("onnxruntime", "gru"), ("onnxruntime", "cnn"), ("openvino", "gru"), ("jax", "gru"))
)
LARGE = tuple(Subject(name, task, "train", "gate") for name in ("torch", "jax") for task in ("cnn", "gru"))
# models of users, which the gate measures as --model; "users" is their scale in the tables
MODELS = {
    "build_torch": ("torch", "32x3x32x32"),
    "build_jax": ("jax", "256x512"),
    "build_keras": ("keras-jax", "256x512"),
}
USERS = tuple(Subject(environment, name, "train", "users") for name, (environment, _) in MODELS.items())
SUBJECTS = (*SMALL, *LARGE, *USERS)
PASSES = {"study": 40, "gate": 12, "users": 20}  # by scale
FILE = Path(__file__).parents[1] / "hand_written.py"

Pool = dict[Subject, list[Result]]  # in the order of time


class Session:
    """The passes of one subject in one condition: those of its file, and those that are measured now."""

    def __init__(self, condition: str, subject: Subject) -> None:
        self.subject, self.trial, self.results = subject, make_trial(condition, subject), list[Result]()
        self.probe = Probe(self.trial.cells[0], LONG)
        path = FOLDER / condition / f"{slug(str(subject))}.jsonl"
        self.log = record.resume(path) if path.exists() else record.create(path, trial.header(self.trial))

    def read(self) -> list[Result]:
        """Take over the passes of the file."""
        self.results += results_in(self.log, self.probe, len(self.results))
        return self.results

    def measure(self) -> None:
        """Add the next passes. Ends the study if a launch fails."""
        measure_next(Gate(self.trial, self.log), [self.probe], {self.probe: self.results})
        if not self.results[-1].runs:
            raise SystemExit(f"{self.subject}: {failures.last_message(self.results[-1].rounds)}")


def make_trial(condition: str, subject: Subject) -> Trial:
    environment, model, name, scale = (
        environments.load(subject.environment),
        None,
        subject.task,
        subject.scale,
    )
    if subject in USERS:
        typed = spec.parse(f"{FILE.name}:{name}", FILE.parent, inputs=inputs.parse(MODELS[name][1]))
        found = inspection.inspect(environment, typed, timeout=120)
        model, environment = inspection.resolved(typed, environment, found)
        name, scale = model.name, "gate"
    return Trial(
        environment,
        environment,
        (Cell(name, subject.phase),),
        METRICS,
        Settings(
            device="cpu",
            threads=1,
            precision="fp32" if model is None else "default",
            malloc="plain" if condition == PLAIN else "steady",
        ),
        seed=0,
        budget=0.0,
        scale=scale,
        subject=model or Tasks(),
        parallel=PARALLEL,
    )


def load(condition: str) -> Pool:
    """Return what is recorded of a condition."""
    recorded = [subject for subject in SUBJECTS if (FOLDER / condition / f"{slug(str(subject))}.jsonl").exists()]
    pool = {subject: Session(condition, subject).read() for subject in recorded}
    return {subject: results for subject, results in pool.items() if not all(one.excluded for one in results)}


def measure(condition: str, subjects: Sequence[Subject], counts: Mapping[str, int]) -> None:
    """Measure passes until each subject has as many as ``counts`` says for its scale; one of each at a time."""
    sessions = [open_session(condition, subject) for subject in subjects]
    missing = [session for session in sessions if len(session.results) < counts[session.subject.scale]]
    start = time.monotonic()
    with (
        lock.machine("tox -e checks -- study", wait=True, say=print),
        foreign.running(condition if missing else ""),
    ):
        while missing:
            for session in missing:
                session.measure()
            passes = ", ".join(f"{session.subject} {len(session.results)}" for session in missing)
            print(f"{condition}, {(time.monotonic() - start) / 60:.1f} min, passes: {passes}", flush=True)
            missing = [session for session in missing if len(session.results) < counts[session.subject.scale]]


def open_session(condition: str, subject: Subject) -> Session:
    """Return the session of a subject whose environment is built. Raises SteleError for a file of another machine."""
    environment = environments.load(subject.environment)
    if environment.lock is not None:
        builds.make(environment)
    session = Session(condition, subject)
    trial.check_record(session.log, session.trial)
    session.read()
    return session
