"""The fixtures of the plugin. Each imports what it needs when a test asks for it."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_stele.progress import Durations, Progress

if TYPE_CHECKING:
    from pytest_stele.collect import Recipe
    from pytest_stele.session import Session
    from stele.environments import Environment
    from stele.measuring.run import Run
    from stele.measuring.settings import Settings
    from stele.measuring.worker import Worker
    from stele.subjects import Subject

Announce = Callable[["Subject", str], None]
SubjectInEnvironment = tuple["Subject", "Environment"]
Inspect = Callable[["Environment", "Subject"], SubjectInEnvironment]


@pytest.fixture
def stele_value(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
    """stele_value(name, value) records what a test computed: ``stele gate -- pytest`` compares it in OLD and NEW.

    Without a gate, it does nothing. ``value`` is a number, an array of any framework, text, or a container of them.
    """
    plugins = request.config.pluginmanager.get_plugins()
    record: Callable[[str, object], None] | None = next(
        (each.record_value for each in plugins if hasattr(each, "record_value")), None
    )
    return record or (lambda name, value: None)


@pytest.fixture(scope="session")
def stele_session(pytestconfig: pytest.Config) -> "Session":
    """The options of the session with their meaning."""
    from pytest_stele import session

    return session.of(pytestconfig)


@pytest.fixture
def stele_settings(stele_session: "Session", stele_subject: "Subject") -> "Settings":
    """The device and the flags that every framework is set to; each Run records what was really in force."""
    return stele_session.settings_of(stele_subject)


@pytest.fixture(scope="session")
def stele_progress(pytestconfig: pytest.Config) -> Progress:
    return Progress(pytestconfig)


@pytest.fixture(scope="session")
def stele_durations(request: pytest.FixtureRequest, stele_session: "Session") -> Durations:
    """How long the timed tests have taken so far, and how long the others will take."""
    return Durations(request.session, stele_session.scale)


@pytest.fixture(scope="session")
def stele_announce(stele_progress: Progress) -> Announce:
    """stele_announce(subject, task) finds the data of a task, and says once a session what is special about it."""
    announced, notices = set[str](), set[str]()

    def say(line: str) -> None:
        if line not in notices:  # several tasks have the same data
            notices.add(line)
            stele_progress.say(line)

    def announce(subject: "Subject", task: str) -> None:
        if task not in announced:
            announced.add(task)
            with stele_progress.uncaptured():  # a download shows its progress
                subject.announce([task], say)

    return announce


@pytest.fixture(scope="session")
def stele_inspect(stele_session: "Session", stele_progress: Progress) -> Inspect:
    """stele_inspect(environment, subject) -> the subject as the environment has it, and that with its framework.

    Each is asked once a session.
    """
    inspected: dict[tuple[str, str], SubjectInEnvironment] = {}

    def inspect(environment: "Environment", subject: "Subject") -> SubjectInEnvironment:
        key = (environment.name, subject.label)
        if key not in inspected:
            timeout, say = stele_session.worker_timeout, stele_progress.say
            inspected[key] = subject.in_environment(environment, timeout=timeout, say=say)
        return inspected[key]

    return inspect


@pytest.fixture
def stele_environment(request: pytest.FixtureRequest) -> "Environment":
    """The environment of the test: in a recipe file its framework; other tests have it as a parameter."""
    return request.node.environment


@pytest.fixture
def stele_task(request: pytest.FixtureRequest) -> str:
    """The name of the task of the test: in a recipe file its folder; other tests have it as a parameter."""
    [name] = request.node.subject.names
    return name


@pytest.fixture
def stele_resolved(
    request: pytest.FixtureRequest,
    stele_environment: "Environment",
    stele_session: "Session",
    stele_inspect: Inspect,
) -> SubjectInEnvironment:
    """What a recipe file or the options name, as the environment has it, and that with its framework."""
    return stele_inspect(stele_environment, getattr(request.node, "subject", stele_session.subject))


@pytest.fixture
def stele_subject(stele_resolved: SubjectInEnvironment) -> "Subject":
    """What is measured: the model of the recipe file or of ``--stele-model``, or the built-in tasks."""
    return stele_resolved[0]


@pytest.fixture
def stele_reference(request: pytest.FixtureRequest) -> "Recipe | None":
    """The recipe of another framework with which a recipe file is compared, or None."""
    return request.node.reference


@pytest.fixture
def stele_launch(
    stele_resolved: SubjectInEnvironment, stele_task: str, stele_session: "Session", stele_settings: "Settings"
) -> Callable[[], "Worker"]:
    """stele_launch() -> a fresh process of the test's environment; the caller closes it."""
    from stele import environments
    from stele.errors import SteleError
    from stele.measuring.worker import Worker
    from stele.text import slug

    _, environment = stele_resolved
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
def stele_process(stele_launch: Callable[[], "Worker"]) -> Iterator["Worker"]:
    """A fresh process of the test's environment; it is closed, with all that it started, when the test ends."""
    with stele_launch() as worker:
        yield worker


@pytest.fixture
def stele_lock(stele_session: "Session", stele_progress: Progress, request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold the lock of the machine while the test runs: two timed tests never run at the same time."""
    from stele.measuring import lock

    with lock.machine(f"pytest {request.node.nodeid}", wait=stele_session.wait, say=stele_progress.notify):
        yield


@pytest.fixture
def stele_measure(
    stele_lock: None,
    stele_process: "Worker",
    stele_launch: Callable[[], "Worker"],
    stele_task: str,
    stele_session: "Session",
    stele_settings: "Settings",
    stele_announce: Announce,
    stele_subject: "Subject",
    stele_progress: Progress,
    stele_durations: Durations,
) -> Callable[[str], list["Run"]]:
    """stele_measure(phase) -> a Run for each launch: trains or infers, and writes each Run to disk at once.

    The last launch is the test's own worker, which stays alive for the parity check.
    """
    from stele.measuring import measure, store
    from stele.subjects import Cell

    def once(worker: "Worker", phase: str) -> "Run":
        stele_announce(stele_subject, stele_task)
        plan = stele_subject.plan(Cell(stele_task, phase), stele_session.scale)
        with stele_progress(f"{stele_durations}: {worker.environment.name} {stele_task} {phase}") as show:
            run = measure.measure(worker, plan, stele_settings, progress=show)
        store.save(run, stele_session.runs)
        return run

    def measure_launches(phase: str) -> list["Run"]:
        runs = []
        for _ in range(stele_session.launches - 1):
            with stele_launch() as worker:
                runs.append(once(worker, phase))
        return [*runs, once(stele_process, phase)]

    return measure_launches


@pytest.fixture
def stele_assert_parity(
    stele_process: "Worker",
    stele_task: str,
    stele_subject: "Subject",
    stele_settings: "Settings",
    pytestconfig: pytest.Config,
) -> Callable[[str], None]:
    """stele_assert_parity(phase) fails the test if the recipe differs from the golden numbers.

    A user's model has no golden numbers: its weights must read back as loaded, and inference must be repeatable.
    """
    from pytest_stele import results
    from stele.errors import SteleError
    from stele.parity import examination, ladder
    from stele.report.results import DifferentRecipe
    from stele.subjects.base import OLD

    def findings(phase: str) -> list[ladder.Finding]:
        if stele_subject.reference == OLD:
            return examination.examine_alone(stele_process, stele_subject, stele_settings, [phase])
        return examination.examine(stele_process, stele_task, stele_settings, [phase])

    def assert_parity(phase: str) -> None:
        first = ladder.first_difference(findings(phase))
        if first is not None:
            name, message = stele_process.environment.name, ladder.message(first)
            results.of(pytestconfig).broken.append(DifferentRecipe(name, stele_task, phase, message))
            raise SteleError(f"{name} {stele_task} {phase}: {message}")

    return assert_parity


@pytest.fixture
def stele_assert_ladder(
    stele_environment: "Environment", stele_task: str, stele_session: "Session", stele_settings: "Settings"
) -> Callable[[], None]:
    """stele_assert_ladder() climbs every rung of parity, and fails the test at the first one that differs.

    A user's model has no golden numbers: its test is skipped.
    """
    from stele.errors import SteleError
    from stele.parity import examination, ladder
    from stele.subjects.base import OLD

    def assert_ladder() -> None:
        if stele_session.subject.reference == OLD:
            pytest.skip("a model of your own has no golden numbers: compare two releases with stele gate")
        result = examination.run_ladder(stele_environment, stele_task, stele_settings)
        first = ladder.first_difference(result.findings)
        if first is not None:
            raise SteleError(f"{stele_environment.name} {stele_task}: {ladder.message(first)}")

    return assert_ladder


@pytest.fixture
def stele_assert_accuracy() -> Callable[[Sequence["Run"]], None]:
    """stele_assert_accuracy(runs) fails the test if the accuracy of one is outside its measured band."""
    from stele.errors import SteleError
    from stele.parity import accuracy

    def assert_accuracy(runs: Sequence["Run"]) -> None:
        for run in runs:
            if message := accuracy.out_of_band_message(run):
                raise SteleError(f"{run.environment} {run.task}: {message}")

    return assert_accuracy


@pytest.fixture
def stele_record(
    request: pytest.FixtureRequest, benchmark: Any, stele_progress: Progress, pytestconfig: pytest.Config
) -> Callable[[Sequence["Run"]], None]:
    """stele_record(runs) enters the steps of all launches into pytest-benchmark; -v prints a line for each launch.

    The facts in pytest-benchmark's ``extra_info`` are those of the last launch.
    """
    from pytest_stele import results
    from pytest_stele.replay import replay
    from stele import schema
    from stele.report.results import line

    def record(runs: Sequence["Run"]) -> None:
        run = runs[-1]
        if hasattr(request.node, "recipe"):  # of a recipe file, whose tests have the same name in every framework
            benchmark.name = run.environment
        benchmark.group = f"{run.task} {run.phase}"
        benchmark.extra_info.update(schema.to_json(run), derived=run.rates(), launches=len(runs))
        replay(benchmark, [seconds for each_run in runs for seconds in each_run.counted_seconds])
        results.of(pytestconfig).runs.append(run)
        results.of(pytestconfig).benchmarks.add(benchmark.fullname)
        if pytestconfig.get_verbosity() > 0:
            for each_run in runs:
                stele_progress.say(line(each_run))

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
