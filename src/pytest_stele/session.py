"""The options of a session with their meaning: what is measured, in which environments, and how.

Relative paths of the command line start at the folder in which pytest was started, defaults at pytest's root.
"""

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pytest_stele import options
from stele import config as variables
from stele import environments
from stele.environments import Environment, arms
from stele.environments.arms import Extras
from stele.errors import SteleError
from stele.gate import baseline
from stele.measuring import processors
from stele.measuring.settings import Settings
from stele.measuring.worker import MAX_TIMEOUT, TIMEOUT
from stele.report.results import table_order
from stele.subjects import Subject, Tasks
from stele.subjects.base import PHASES
from stele.subjects.model import inputs, spec
from stele.text import counted
from stele_suite import tasks

SESSION = pytest.StashKey["Session"]()
SCALES = {"cpu": "quick", "cuda": "paper"}  # the defaults
PARITY = "parity"  # the scale of the golden numbers, with a step or twenty
RUNS = Path(".stele/runs")
OF_MODEL = ("input", "optimizer", "pretrained")
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
    subject: Subject
    precision: str | None  # as typed
    named: bool  # whether the user named the environments

    def header(self) -> str:
        return f"stele: scale {self.scale}, {self.settings_of(self.subject).summary()}"

    def settings_of(self, subject: Subject) -> Settings:
        """Return the settings of a test; what is not tuned is computed in the framework's default precision."""
        if subject.tuned or self.precision is not None:
            return self.settings
        return replace(self.settings, precision="default")

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Make a test for each task and environment that exist here; if there are none, one that ``plugin`` drops."""
        cells = self.cells(getattr(metafunc.module, "PHASE", "train"))
        metafunc.parametrize(("stele_task", "stele_environment"), cells or [pytest.param(None, None)])

    def cells(self, phase: str) -> list[Any]:
        """Return the parameters of the tests of a phase, task by task.

        A task that an environment cannot run here is no test. But if the user named an environment that can run
        none of the tasks, all of them are skipped with the reason.
        """
        reasons = {environment: self.reasons(environment, phase) for environment in self.environments}
        cells = []
        for task, environment in product(self.tasks, self.environments):
            reason = reasons[environment][task]
            if reason is None:
                cells.append(pytest.param(task, environment, id=f"{task}-{environment.name}"))
            elif self.named and all(reasons[environment].values()):
                mark = pytest.mark.skip(reason=reason)
                cells.append(pytest.param(task, environment, id=f"{task}-{environment.name}", marks=mark))
        return cells

    def reasons(self, environment: Environment, phase: str) -> dict[str, str | None]:
        """Return why an environment cannot run a phase of each task here; None for a task that it can run."""
        state = environments.state(environment)
        missing = state.reason if state.status == "missing" else None
        return {task: self.absence(environment, task, phase) or missing for task in self.tasks}

    def left_out(self) -> str:
        """Return a line about the environments that have no tests because they are not installed here; or ""."""
        if self.named:
            return ""  # their tests are skipped, with the reason
        cells = list(product(self.tasks, PHASES))
        missing = [
            environment
            for environment in self.environments
            if environments.state(environment).status == "missing"
            and not all(self.absence(environment, *cell) for cell in cells)
        ]
        to_build = sum(environment.lock is not None for environment in missing)
        parts = (len(missing) - to_build, "installed", "list"), (to_build, "built", "make --all")
        return "; ".join(
            f"{counted(number, 'environment')} {'is' if number == 1 else 'are'} not {what}: stele env {verb}"
            for number, what, verb in parts
            if number
        )

    def absence(self, environment: Environment, task: str, phase: str) -> str | None:
        settings = self.settings
        where = {"device": settings.device, "precision": settings.precision}
        return environment.why_absent(task, phase, **where, devices=settings.devices)


def of(config: pytest.Config) -> Session:
    """Return the session of a configuration. Raises pytest.UsageError if an option has no meaning."""
    if SESSION not in config.stash:
        holding = contextlib.ExitStack()
        config.add_cleanup(holding.close)
        holding.enter_context(variables.hold())
        try:
            config.stash[SESSION] = resolved(config)
        except SteleError as error:
            raise pytest.UsageError(as_typed(str(error), config)) from None
    return config.stash[SESSION]


def as_typed(message: str, config: pytest.Config) -> str:
    """Return a message with the options as this command line has them: ``--stele-device`` for ``--device``."""
    typed = {word.partition("=")[0] for word in config.invocation_params.args}
    flags = {
        option.short: option.flag for option in options.OPTIONS if option.flag in typed or option.short not in typed
    }
    return re.sub(r"(?<![\w-])--[a-z][a-z-]*", lambda match: flags.get(match[0], match[0]), message)


def threads_of_each(count: int, threads: int | None) -> int:
    """Return the threads of each device: an equal part of the processors, if none are asked for."""
    return max(processors.count() // max(count, 1), 1) if threads is None else threads


def resolved(config: pytest.Config) -> Session:
    values = {option.name.replace("-", "_"): getattr(config.option, option.dest) for option in options.OPTIONS}
    chosen = {name: values[name] for name in SETTINGS if values[name] is not None and values[name] is not False}
    chosen["threads"] = threads_of_each(chosen.get("devices", 1), values["threads"])
    settings = Settings(**chosen)
    if not config.option.collectonly:  # which measures nothing
        settings.check_machine()
    if values["launches"] is not None and values["launches"] < 1:
        raise SteleError(f"--launches {values['launches']}: at least 1 launch is needed.")
    timeout = TIMEOUT if values["worker_timeout"] is None else values["worker_timeout"]
    if not 0 < timeout <= MAX_TIMEOUT:
        raise SteleError(f"--worker-timeout {timeout:g} is not a positive number of seconds.")
    subject = subject_of(config, values)
    names = list(subject.names)
    return Session(
        root=config.rootpath,
        subject=subject,
        environments=selected_environments(values["framework"], modes=values["modes"])
        if subject.needs.described
        else arms_of(subject, values),
        tasks=names,
        scale=one_of("scale", values["scale"] or SCALES[settings.device], scales_of(names)),
        settings=settings,
        worker_timeout=timeout,
        launches=values["launches"] or 1,
        runs=folder(config, values["runs"], RUNS),
        baselines=folder(config, values["baselines"], baseline.FOLDER),
        save_baseline=values["save_baseline"],
        against_baseline=values["against_baseline"],
        wait=not values["no_wait"],
        precision=values["precision"],
        named=bool(listed(values["framework"])),
    )


def scales_of(names: Sequence[str]) -> Sequence[str]:
    """Return the scales that all of these tasks have; a task of the user has those of every task."""
    modules = [tasks.load(name) for name in names if name in tasks.NAMES]
    others = (
        [scale for scale in modules[0].SCALES if all(scale in module.SCALES for module in modules)] if modules else []
    )
    return tuple(dict.fromkeys([*tasks.SCALES, *(scale for scale in others if scale != PARITY)]))


def subject_of(config: pytest.Config, values: dict[str, Any]) -> Subject:
    if values["model"] is None:
        spec.refuse({name: values[name] for name in OF_MODEL})
        return Tasks(tuple(selected("task", values["task"], tasks.NAMES)))
    spec.refuse_task(values["task"])
    typed = None if values["input"] is None else inputs.parse(values["input"])
    return spec.parse(
        values["model"],
        config.invocation_params.dir,
        inputs=typed,
        optimizer=values["optimizer"],
        pretrained=values["pretrained"],
    )


def arms_of(subject: Subject, values: dict[str, Any]) -> list[Environment]:
    """Return the environments in which code of the user is measured: those that were named, or that of pytest."""
    names = listed(values["framework"])
    return [arms.load(name, subject.needs, Extras()) for name in names] or [arms.HOST]


def folder(config: pytest.Config, typed: str | None, default: Path) -> Path:
    return config.rootpath / default if typed is None else config.invocation_params.dir / typed


def selected_environments(values: list[str] | None, *, modes: bool) -> list[Environment]:
    """Return the environments in ``a,b`` or in several options, in the order of the tables; with all their modes."""
    names = dict.fromkeys(listed(values) or environments.first_modes())
    if modes:
        others = [name for name, environment in environments.described().items() if environment.base in names]
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
