"""Train a task from several seeds, each in a fresh process. Each Run is on disk before the next training starts."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring import content, measure, progress, store, worker
from stele.measuring.run import CLOSED, Options, Origin, Run
from stele.measuring.settings import Settings
from stele.measuring.worker import WorkerError
from stele.text import slug, versions
from stele_worker.protocol import TIME_TO_ACCURACY

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Training:
    """What is trained. ``epochs`` and ``tricks`` replace those of the Task at its scale; None for the Task's own.

    In the ``division`` "open", the framework draws initial weights, crops, flips and squares.
    """

    task: str
    scale: str
    settings: Settings
    seeds: int
    folder: Path
    epochs: int | None = None
    tricks: tuple[str, ...] | None = None
    timeout: float = worker.TIMEOUT
    division: str = CLOSED

    @property
    def options(self) -> Options:
        """What replaces the values of the Task."""
        division = None if self.division == CLOSED else self.division
        return Options(epochs=self.epochs, tricks=self.tricks, division=division)


def train(environment: Environment, training: Training) -> Iterator[Run]:
    """Yield the Run of each seed; those that an interrupted command has saved are not trained again.

    Raises WorkerError if a worker fails, and SteleError if the release changed since the interruption.
    """
    fields, _ = measure.inputs(training.task)
    before = recorded(environment, training, fields["data_origin"])
    require_same_content(environment, before)
    for seed in range(training.seeds):
        run = before.get(seed)
        if run is None:
            run = train_seed(environment, training, fields, seed)
            store.save(run, training.folder / store.UNFINISHED)
            checkpoint(environment, training, seed, fields).unlink(missing_ok=True)
            require_same_release(run, before)
            content.require_same([trained.content for trained in (*before.values(), run)], "The seeds")
            before[seed] = run
        yield run


def in_turns(waiting: dict[Name, Iterator[Run]]) -> Iterator[tuple[Name, Run | WorkerError]]:
    """Yield the first seed of each training, then the second, and so on: a change of the machine affects all alike.

    A training that fails yields its error and ends. A name that the caller deletes from ``waiting`` ends, too.
    """
    while waiting:
        for name in list(waiting):
            if name not in waiting:
                continue
            run: Run | WorkerError | None
            try:
                run = next(waiting[name], None)
            except WorkerError as error:
                run = error
            if run is None or isinstance(run, WorkerError):
                del waiting[name]
            if run is not None:
                yield name, run


def recorded(environment: Environment, training: Training, origin: Origin) -> dict[int, Run]:
    """Return the saved Runs of these trainings by their seed."""
    saved = store.load_each(training.folder / store.UNFINISHED)
    return {run.settings.seed: run for run in saved if is_of(run, environment, training) and run.data == origin}


def is_of(run: Run, environment: Environment, training: Training) -> bool:
    """Return whether a Run is one of the trainings, of any seed."""
    settings = replace(training.settings, seed=run.settings.seed)
    cell = (environment.name, training.task, TIME_TO_ACCURACY, training.scale, settings, training.options.changes)
    return cell == (run.environment, run.task, run.phase, run.scale, run.settings, run.options.changes)


def finish(environment: Environment, training: Training) -> None:
    """Let the next command train again."""
    store.finish(training.folder, lambda run: is_of(run, environment, training))


def train_seed(environment: Environment, training: Training, fields: measure.Inputs, seed: int) -> Run:
    """Train one seed. A training that was killed continues from its last checkpoint."""
    settings = replace(training.settings, seed=seed)
    path = checkpoint(environment, training, seed, fields)
    path.parent.mkdir(parents=True, exist_ok=True)
    plan = measure.Plan(
        training.task,
        TIME_TO_ACCURACY,
        training.scale,
        checkpoint=str(path.absolute()),
        options=training.options,
        **fields,
    )
    title = f"{environment.name} {training.task}, seed {seed + 1} of {training.seeds}"
    with (
        worker.launch(environment, settings, timeout=training.timeout) as live,
        progress.bar(title) as show,
    ):
        return measure.measure(live, plan, settings, progress=show)


def checkpoint(environment: Environment, training: Training, seed: int, fields: measure.Inputs) -> Path:
    """Return the file of the state of a training that has not ended."""
    data = fields["data_origin"].fingerprint[:12]
    key = content.digest(content.of_launch(environment))
    values = (training.epochs, *(training.tricks or ()), training.options.division, key)
    changes = "-".join(str(value) for value in values if value is not None)
    settings = replace(training.settings, seed=seed).summary()
    name = slug(f"{environment.name}-{training.task}-{training.scale}-{changes}-{settings}-{data}")
    return training.folder / store.UNFINISHED / f"{name}.npz"


def require_same_content(environment: Environment, before: dict[int, Run]) -> None:
    """Raise SteleError if what decides a training has changed since the saved ones."""
    now = content.of_launch(environment)
    for run in before.values():
        if changed := content.changed_groups(run.content, now):
            raise SteleError(
                f"{environment.name} cannot be trained from more seeds, because {changed} changed since the saved "
                f"trainings. Undo the change, or delete them from the folder {store.UNFINISHED}."
            )


def require_same_release(run: Run, before: dict[int, Run]) -> None:
    """Raise SteleError if the saved Runs are of another release."""
    for other in before.values():
        if other.framework.versions != run.framework.versions:
            raise SteleError(
                f"{run.environment} is now {versions(run.framework.versions)}, but the saved trainings are of "
                f"{versions(other.framework.versions)}. Install that release, or delete them from the folder "
                f"{store.UNFINISHED}."
            )
