"""The options of a session with their meaning: what is measured, in which environments, and how.

Relative paths of the command line start at the folder in which pytest was started, defaults at pytest's root.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_stele import options
from stele import environments
from stele.environments import Environment
from stele.errors import SteleError
from stele.gate import baseline
from stele.measuring import processors
from stele.measuring.settings import Settings
from stele.measuring.worker import MAX_TIMEOUT, TIMEOUT
from stele.models import arms, inputs, spec
from stele.models.arms import Extras
from stele.models.spec import Model
from stele.report.results import table_order
from stele_worker import tasks

SESSION = pytest.StashKey["Session"]()
SCALES = {"cpu": "quick", "cuda": "paper"}  # the defaults
PARITY = "parity"  # the scale of the golden numbers, with a step or twenty
RUNS = Path(".stele/runs")
SETTINGS = ("device", "precision", "threads", "devices", "scaling", "malloc", "deterministic", "seed")


@dataclass(frozen=True)
class Session:
    """What the command line asks for; paths are absolute."""

    root: Path
    environments: list[Environment]
    tasks: list[str]
    scale: str
    settings: Settings  # of the built-in tasks
    worker_timeout: float  # seconds
    launches: int
    runs: Path
    baselines: Path
    save_baseline: bool
    against_baseline: bool
    wait: bool
    model: Model | None
    precision: str | None  # as typed

    def header(self) -> str:
        return f"stele: scale {self.scale}, {self.settings_of(self.model).summary()}"

    def settings_of(self, model: Model | None) -> Settings:
        """Return the settings of a test; a model of the user is computed in the framework's default precision."""
        if model is None or self.precision is not None:
            return self.settings
        return replace(self.settings, precision="default")

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Make a test for each task and environment; one that cannot run here is skipped with the reason."""
        phase = getattr(metafunc.module, "PHASE", "train")
        states = [(environment, environments.state(environment)) for environment in self.environments]
        cells = []
        for task in self.tasks:
            for environment, state in states:
                reason = self.absence(environment, task, phase)
                reason = reason or (state.reason if state.status == "missing" else None)
                marks = [pytest.mark.skip(reason=reason)] if reason else []
                cells.append(pytest.param(task, environment, id=f"{task}-{environment.name}", marks=marks))
        metafunc.parametrize(("stele_task", "stele_environment"), cells)

    def absence(self, environment: Environment, task: str, phase: str) -> str | None:
        settings = self.settings
        where = {"device": settings.device, "precision": settings.precision}
        return environment.why_absent(task, phase, **where, devices=settings.devices)


def of(config: pytest.Config) -> Session:
    """Return the session of a configuration. Raises pytest.UsageError if an option has no meaning."""
    if SESSION not in config.stash:
        try:
            config.stash[SESSION] = resolved(config)
        except SteleError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[SESSION]


def threads_of_each(count: int, threads: int | None) -> int:
    """Return the threads of each device: an equal part of the processors, if none are asked for."""
    return max(processors.count() // max(count, 1), 1) if threads is None else threads


def resolved(config: pytest.Config) -> Session:
    given = {option.name.replace("-", "_"): getattr(config.option, option.dest) for option in options.OPTIONS}
    chosen = {name: given[name] for name in SETTINGS if given[name] is not None and given[name] is not False}
    chosen["threads"] = threads_of_each(chosen.get("devices", 1), given["threads"])
    settings = Settings(**chosen)
    if not config.option.collectonly:  # which measures nothing
        settings.check_processors()
    if given["launches"] is not None and given["launches"] < 1:
        raise SteleError(f"--launches {given['launches']}: at least 1 launch is needed.")
    timeout = TIMEOUT if given["worker_timeout"] is None else given["worker_timeout"]
    if not 0 < timeout <= MAX_TIMEOUT:
        raise SteleError(f"--worker-timeout {timeout:g} is not a positive number of seconds.")
    model = model_of(config, given)
    names = selected("task", given["task"], tasks.NAMES) if model is None else [model.name]
    return Session(
        root=config.rootpath,
        model=model,
        environments=selected_environments(given["framework"], modes=given["modes"])
        if model is None
        else arms_of(model, given),
        tasks=names,
        scale=one_of("scale", given["scale"] or SCALES[settings.device], scales_of(names)),
        settings=settings,
        worker_timeout=timeout,
        launches=given["launches"] or 1,
        runs=folder(config, given["runs"], RUNS),
        baselines=folder(config, given["baselines"], baseline.FOLDER),
        save_baseline=given["save_baseline"],
        against_baseline=given["against_baseline"],
        wait=not given["no_wait"],
        precision=given["precision"],
    )


def scales_of(names: Sequence[str]) -> Sequence[str]:
    """Return the scales that all of these tasks have; a task of the user has those of every task."""
    modules = [tasks.load(name) for name in names if name in tasks.NAMES]
    others = (
        [scale for scale in modules[0].SCALES if all(scale in one.SCALES for one in modules)]
        if modules
        else []
    )
    return tuple(dict.fromkeys([*tasks.SCALES, *(scale for scale in others if scale != PARITY)]))


def model_of(config: pytest.Config, given: dict[str, Any]) -> Model | None:
    if given["model"] is None:
        return None
    typed = None if given["input"] is None else inputs.parse(given["input"])
    options = {"optimizer": given["optimizer"], "pretrained": given["pretrained"]}
    return spec.parse(given["model"], config.invocation_params.dir, inputs=typed, **options)


def arms_of(model: Model, given: dict[str, Any]) -> list[Environment]:
    """Return the environments in which a model is measured: those that were named, or the one of pytest itself."""
    names = listed(given["framework"])
    return [arms.load(name, model, Extras()) for name in names] or [arms.HOST]


def folder(config: pytest.Config, typed: str | None, default: Path) -> Path:
    return config.rootpath / default if typed is None else config.invocation_params.dir / typed


def selected_environments(values: list[str] | None, *, modes: bool) -> list[Environment]:
    """Return the environments in ``a,b`` or in several options, in the order of the tables; with all their modes."""
    names = dict.fromkeys(listed(values) or environments.first_modes())
    if modes:
        others = [name for name, one in environments.described().items() if one.base in names]
        names.update(dict.fromkeys(others))
    return sorted(map(environments.load, names), key=lambda environment: table_order(environment.name))


def selected(kind: str, values: list[str] | None, names: tuple[str, ...]) -> list[str]:
    """Return the names in ``a,b`` or in several options, in the order of the tables; all if there are none."""
    typed = [one_of(kind, name, names) for name in listed(values)]
    return [name for name in names if name in typed or not typed]


def one_of(kind: str, name: str, names: Iterable[str]) -> str:
    """Return the name. Raises SteleError, with the nearest name, if it is unknown."""
    if name not in names:
        raise SteleError(environments.unknown_message(kind, name, names))
    return name


def listed(values: Any) -> list[str]:
    return [name for value in values or [] for name in value.split(",") if name]
