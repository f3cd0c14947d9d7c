"""The entry point ``pytest11``: hooks and fixtures. It does nothing unless a test, an option or a file uses Stele."""

from pathlib import Path
from typing import Any

import pytest

from pytest_stele import options
from pytest_stele.progress import Messages

pytest_plugins = ["pytest_stele.fixtures"]

MARKERS = (
    "stele_tolerance(step=0.05, ...): growth against the baseline that is accepted, as a fraction",
    "stele_margin(step=0.05, ...): growth against the baseline that has to be ruled out, as a fraction",
)
FIXTURE = "stele_"  # every fixture of the plugin starts with it
ENVIRONMENT = "stele_environment"
RECIPES = (
    "chainer",
    "jax",
    "keras",
    "mxnet_gluon",
    "numpy",
    "paddle",
    "tensorflow",
    "torch",
)  # names of files


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add(parser)


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    config.pluginmanager.register(Messages(config))
    if options.used(config):
        from pytest_stele import session

        session.of(config)  # reports a wrong option before the collection starts
    if config.option.stele_model or config.option.stele_suite:
        typed = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
        config.args = [*typed, str(suite())]


def suite() -> Path:
    """Return the folder of the built-in tests: in the wheel beside this file, in a checkout ``perf_tests``."""
    folder = Path(__file__).parent / "suite"
    return folder if folder.is_dir() else Path(__file__).parents[2] / "perf_tests"


def pytest_report_header(config: pytest.Config) -> str | None:
    if not options.used(config):
        return None
    from pytest_stele import session

    return session.of(config).header()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Any:
    """Collect ``recipes/<task>/<framework>.py``, and do not let pytest import it as a module of tests."""
    collectors = yield
    if not is_recipe(file_path):
        return collectors
    from pytest_stele import collect

    return [collect.recipe_file(parent, file_path)]


def is_recipe(path: Path) -> bool:
    """Return whether a path is that of a recipe with a network. It reads no other file."""
    if path.suffix != ".py" or path.stem not in RECIPES or path.parent.parent.name != "recipes":
        return False
    return path.parents[2].name != "stele_suite" and b"network" in path.read_bytes()  # not the built-in ones


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test for each task and environment."""
    if ENVIRONMENT in metafunc.fixturenames:
        from pytest_stele import results, session

        this = session.of(metafunc.config)
        this.parametrize(metafunc)
        results.of(metafunc.config).left_out = this.left_out()


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Any:
    """Drop the tests that nothing here can run, and with ``--benchmark-only`` those that time nothing."""
    items = yield
    only = getattr(collector.config.option, "benchmark_only", False)
    return [item for item in items if not is_dropped(item, only)] if isinstance(items, list) else items


def is_dropped(item: pytest.Item, only_timed: bool) -> bool:
    names = getattr(item, "fixturenames", ())
    if ENVIRONMENT not in names:
        return False
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return parameters.get(ENVIRONMENT, item) is None or (only_timed and "benchmark" not in names)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse an option of the command line that changes nothing, because all tests are those of others."""
    if hasattr(session.config, "workerinput") or not session.items or any(map(uses_stele, session.items)):
        return  # pytest-xdist does not show the error of a worker
    typed = {word.partition("=")[0] for word in session.config.invocation_params.args}
    for option in options.OPTIONS:
        if option.flag in typed:
            raise pytest.UsageError(
                f"{option.flag} has no effect: these tests are not Stele's. Add --stele-suite or --stele-model, or "
                "leave it out."
            )


def uses_stele(item: pytest.Item) -> bool:
    return any(name.startswith(FIXTURE) for name in getattr(item, "fixturenames", ()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Any:
    return (yield from reported(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    return (yield from reported(item))


def reported(item: pytest.Item) -> Any:
    """Run the wrapped hook and report an error of Stele without a traceback."""
    if not uses_stele(item):
        return (yield)
    from stele.errors import SteleError
    from stele.subjects import errors

    try:
        return (yield)
    except SteleError as error:
        message = str(errors.user_error(error) or error)
    pytest.fail(message, pytrace=False)  # outside of the except clause: the report has the message once


@pytest.hookimpl(tryfirst=True)  # before pytest-benchmark prints its tables
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    from pytest_stele import results

    if results.RESULTS in config.stash:
        results.hide_tables(config)
        results.summary(terminalreporter, config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Under pytest-xdist: take the results over from a worker that has ended."""
    sent = getattr(node, "workeroutput", {}).get(options.PREFIX)
    if sent:
        from pytest_stele import results

        results.of(node.config).receive(sent)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under pytest-xdist: hand the results of this worker to the controller."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        from pytest_stele import results

        if results.RESULTS in session.config.stash:
            output[options.PREFIX] = results.of(session.config).send()
