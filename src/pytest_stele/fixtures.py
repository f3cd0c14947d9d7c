"""The fixtures of the plugin. Each imports what it needs when a test asks for it."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_stele.progress import Progress

if TYPE_CHECKING:
    from pytest_stele.collect import Recipe
    from pytest_stele.session import Session
    from stele.environments import Environment
    from stele.measuring.run import Run
    from stele.measuring.settings import Settings
    from stele.measuring.worker import Worker
    from stele.models.spec import Model

Inputs = Callable[[str], dict[str, Any]]
Subject = tuple["Model | None", "Environment"]
Inspect = Callable[["Environment", "Model | None"], Subject]


@pytest.fixture(scope="session")
def stele_session(pytestconfig: pytest.Config) -> "Session":
    """The options of the session with their meaning."""
    from pytest_stele import session

    return session.of(pytestconfig)


@pytest.fixture
def stele_settings(stele_session: "Session", stele_model: "Model | None") -> "Settings":
    """The device and the flags that every framework is set to; each Run records what was really in force."""
    return stele_session.settings_of(stele_model)


@pytest.fixture(scope="session")
def stele_progress(pytestconfig: pytest.Config) -> Progress:
    return Progress(pytestconfig)


@pytest.fixture(scope="session")
def stele_inputs(stele_progress: Progress) -> Inputs:
    """stele_inputs(task) -> the fields of a Plan that say where data and weights are; each is found once a session."""
    from stele.measuring import measure

    known: dict[str, dict[str, Any]] = {}

    def inputs(task: str) -> dict[str, Any]:
        if task not in known:
            with stele_progress.past_capture():  # a download shows its progress
                known[task], notice = measure.inputs(task)
            if notice:
                stele_progress.say(f"stele: {notice}")
        return known[task]

    return inputs


@pytest.fixture(scope="session")
def stele_inspect(stele_session: "Session", stele_progress: Progress) -> Inspect:
    """stele_inspect(environment, model) -> the model with its inputs, and the environment with its framework.

    Both are inspected once a session. Without a model they stay as they are.
    """
    from stele.models import inspection

    known: dict[tuple[str, str], Subject] = {}

    def inspect(environment: "Environment", model: "Model | None") -> Subject:
        if model is None:
            return None, environment
        key = (environment.name, model.spec)
        if key not in known:
            result = inspection.inspect(environment, model, timeout=stele_session.worker_timeout)
            stele_progress.say(f"stele: {result.describe(training=True)}")
            inspection.check(result, model, training=False)
            known[key] = inspection.resolved(model, environment, result)
        return known[key]

    return inspect


@pytest.fixture
def stele_environment(request: pytest.FixtureRequest) -> "Environment":
    """The environment of the test: in a recipe file its framework; other tests have it as a parameter."""
    return request.node.environment


@pytest.fixture
def stele_task(request: pytest.FixtureRequest) -> str:
    """The name of the task of the test: in a recipe file its folder; other tests have it as a parameter."""
    return request.node.model.name


@pytest.fixture
def stele_subject(
    request: pytest.FixtureRequest,
    stele_environment: "Environment",
    stele_session: "Session",
    stele_inspect: Inspect,
) -> Subject:
    """The model of the recipe file or of ``--stele-model``, or None; and the environment with its framework."""
    return stele_inspect(stele_environment, getattr(request.node, "model", stele_session.model))


@pytest.fixture
def stele_model(stele_subject: Subject) -> "Model | None":
    """The model of the recipe file or of ``--stele-model`` with its inputs, or None."""
    return stele_subject[0]


@pytest.fixture
def stele_reference(request: pytest.FixtureRequest) -> "Recipe | None":
    """The recipe of another framework with which a recipe file is compared, or None."""
    return request.node.reference


@pytest.fixture
def stele_launch(
    stele_subject: Subject, stele_task: str, stele_session: "Session", stele_settings: "Settings"
) -> Callable[[], "Worker"]:
    """stele_launch() -> a fresh process of the test's environment; the caller closes it."""
    from stele import environments
    from stele.environments.description import slug
    from stele.errors import SteleError
    from stele.measuring.worker import Worker

    _, environment = stele_subject
    state = environments.state(environment)
    if state.status == "broken":
        raise SteleError(f"'{environment.name}' is broken: {state.reason}")
    count = itertools.count(1)

    def launch() -> Worker:
        name = slug(f"{environment.name}-{stele_task}-{next(count)}")
        log = stele_session.root / ".stele/logs" / f"{name}.log"
        variables = stele_settings.variables()
        return Worker(environment, log=log, variables=variables, timeout=stele_session.worker_timeout)

    return launch


@pytest.fixture
def stele_worker(stele_launch: Callable[[], "Worker"]) -> Iterator["Worker"]:
    """A fresh process of the test's environment; it is closed, with all that it started, when the test ends."""
    with stele_launch() as worker:
        yield worker


@pytest.fixture
def stele_lock(
    stele_session: "Session", stele_progress: Progress, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Hold the lock of the machine while the test runs: two timed tests never run at the same time."""
    from stele.measuring import lock

    with lock.machine(f"pytest {request.node.nodeid}", wait=stele_session.wait, say=stele_progress.notify):
        yield


@pytest.fixture
def stele_measure(
    stele_lock: None,
    stele_worker: "Worker",
    stele_launch: Callable[[], "Worker"],
    stele_task: str,
    stele_session: "Session",
    stele_settings: "Settings",
    stele_inputs: Inputs,
    stele_model: "Model | None",
    stele_progress: Progress,
) -> Callable[[str], list["Run"]]:
    """stele_measure(phase) -> a Run for each launch: trains or infers, and writes each Run to disk at once.

    The last launch is the test's own worker, which stays alive for the parity check.
    """
    from stele.measuring import measure, store

    def plan_of(phase: str) -> measure.Plan:
        scale = stele_session.scale
        if stele_model is not None:
            return measure.model_plan(
                stele_task, phase, scale, stele_model.as_request(), files=stele_model.sources()
            )
        return measure.Plan(task=stele_task, phase=phase, scale=scale, **stele_inputs(stele_task))

    def once(worker: "Worker", phase: str) -> "Run":
        plan = plan_of(phase)
        with stele_progress(f"{worker.environment.name}  {stele_task} {phase}") as show:
            run = measure.measure(worker, plan, stele_settings, progress=show)
        store.save(run, stele_session.runs)
        return run

    def measure_launches(phase: str) -> list["Run"]:
        runs = []
        for _ in range(stele_session.launches - 1):
            with stele_launch() as worker:
                runs.append(once(worker, phase))
        return [*runs, once(stele_worker, phase)]

    return measure_launches


@pytest.fixture
def stele_assert_parity(
    stele_worker: "Worker",
    stele_task: str,
    stele_model: "Model | None",
    stele_settings: "Settings",
    pytestconfig: pytest.Config,
) -> Callable[[str], None]:
    """stele_assert_parity(phase) fails the test if the recipe differs from the golden numbers.

    A user's model has no golden numbers: its weights must read back as loaded, and inference must be repeatable.
    """
    from pytest_stele import results
    from stele.errors import SteleError
    from stele.parity import examination, ladder
    from stele.report.results import Difference

    def findings(phase: str) -> list[ladder.Finding]:
        if stele_model is not None:
            return examination.examine_model(stele_worker, stele_model, stele_settings, [phase])
        return examination.examine(stele_worker, stele_task, stele_settings, [phase])

    def assert_parity(phase: str) -> None:
        first = ladder.first_difference(findings(phase))
        if first is not None:
            name, message = stele_worker.environment.name, ladder.message(first)
            results.of(pytestconfig).broken.append(Difference(name, stele_task, phase, message))
            raise SteleError(f"{name} {stele_task} {phase}: {message}")

    return assert_parity


@pytest.fixture
def stele_assert_accuracy() -> Callable[["Run"], None]:
    """stele_assert_accuracy(run) fails the test if the accuracy is outside its measured band."""
    from stele.errors import SteleError
    from stele.parity import accuracy

    def assert_accuracy(run: "Run") -> None:
        if message := accuracy.out_of_band_message(run):
            raise SteleError(f"{run.environment} {run.task}: {message}")

    return assert_accuracy


@pytest.fixture
def stele_record(
    request: pytest.FixtureRequest, benchmark: Any, stele_progress: Progress, pytestconfig: pytest.Config
) -> Callable[[Sequence["Run"]], None]:
    """stele_record(runs) enters the steps of all launches into pytest-benchmark and prints a line for each launch.

    The facts in pytest-benchmark's ``extra_info`` are those of the last launch.
    """
    from pytest_stele import results
    from pytest_stele.replay import replay
    from stele.report.results import line

    def record(runs: Sequence["Run"]) -> None:
        run = runs[-1]
        if hasattr(
            request.node, "model"
        ):  # of a recipe file, whose tests have the same name in every framework
            benchmark.name = run.environment
        benchmark.group = f"{run.task} {run.phase}"
        benchmark.extra_info.update(run.to_dict(), derived=run.rates(), launches=len(runs))
        replay(benchmark, [seconds for one in runs for seconds in one.counted_seconds])
        results.of(pytestconfig).runs.append(run)
        for one in runs:
            stele_progress.say(line(one))

    return record


@pytest.fixture
def stele_assert_baseline(
    request: pytest.FixtureRequest, stele_session: "Session", stele_progress: Progress
) -> Callable[[Sequence["Run"]], None]:
    """stele_assert_baseline(runs) saves the runs, or fails the test if they are slower than its baseline."""
    from pytest_stele import baselines
    from stele.gate import baseline

    def assert_baseline(runs: Sequence["Run"]) -> None:
        if stele_session.save_baseline:
            stele_progress.say(f"saved {baseline.save(runs, stele_session.baselines)}")
        if stele_session.against_baseline:
            baselines.compare(request, runs, stele_session.baselines)

    return assert_baseline
