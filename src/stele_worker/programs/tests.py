"""Tests of the user in the pytest of the environment, one by one, when the host asks for them.

The plugin replaces the loop over the tests, and nothing else: collection, fixtures, marks, configuration and other
plugins are the user's. What would write files into the user's folder, or change the order in one of the arms, is
switched off: ``SWITCHED_OFF``.
"""

import functools
import os
import sys
from time import perf_counter

import pytest

from stele_worker import process, protocol
from stele_worker.programs import Program, assertions, outcome, profiling, timed, values

# options of pytest and of its plugins, and what they are set to: see docs/your-tests.md
SWITCHED_OFF = {
    "numprocesses": 0,  # pytest-xdist
    "dist": "no",
    "tx": [],
    "randomly_seed": 0,  # pytest-randomly: the same order in all arms
    "cov_source": [],  # pytest-cov
    "no_cov": True,
    "xmlpath": None,  # reports
    "htmlpath": None,
    "json_report": False,
    "benchmark_autosave": False,  # pytest-benchmark
    "benchmark_save": None,
    "benchmark_json": None,
    "benchmark_compare": None,
    "benchmark_compare_fail": None,
    "benchmark_histogram": None,
    "maxfail": 0,
    "usepdb": False,
}
FAILED = ("failed", "error")
BENCHMARK = "benchmark"  # the fixture of pytest-benchmark
FURTHER = "further values"
INTERNAL = 3  # exit code
EXITS = {2: "it was interrupted", INTERNAL: "an internal error", 4: "a wrong option", 5: "no tests were collected"}


class Main(Program):
    def prepare(self, model):
        self.arguments, self.not_collected = model["arguments"], {}
        if model["in_path"]:  # as ``python -m pytest`` does
            sys.path.insert(0, self.folder)
        return 0.0, {"pytest": pytest.__version__}

    def collect(self, host):
        """Start pytest, and answer all further requests while it runs. Return how it ended, as answer to ``finish``."""
        assertions.watch(self.record, self.folder)
        stop_writing()
        self.host, self.session, self.item = host, None, None
        cache = os.path.join(os.environ["TMPDIR"], "pytest-cache")
        code = int(pytest.main([*self.arguments, "-o", "cache_dir=" + cache], plugins=[self]))
        if self.session is None:
            what = EXITS.get(code, "exit code {}".format(code))
            raise RuntimeError("pytest ended before it ran a test: {}".format(what))
        if code == INTERNAL:
            raise RuntimeError("pytest ended with an internal error")
        return {"exit": code}

    # what pytest calls

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config):
        switch_off(early_config.known_args_namespace)

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config):
        switch_off(config.option)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config):
        switch_off(config.option)

    def pytest_collectreport(self, report):
        if report.failed:
            message, place = crash_of(report, self.folder)
            self.not_collected[report.nodeid or "collection"] = {"message": message, "place": place}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """Send what was collected as the answer to ``collect``, and answer requests until one says ``finish``."""
        self.session, self.items = session, {item.nodeid: item for item in session.items}
        failures = [dict(failure, name=name) for name, failure in self.not_collected.items()]
        names = [{"name": name} for name in self.items]
        self.host.send("result", {"items": names, "failures": failures})
        for line in self.requests:
            request = protocol.decode(line)
            if request["verb"] == "finish":  # ``collect`` answers it, when pytest has ended
                self.host.number = request["id"]
                break
            self.answer(self.do, line, self.requests, self.answers)
        return True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        """Let the fixture of pytest-benchmark time as many rounds as the host asks for."""
        yield
        if fixturedef.argname == BENCHMARK and fixturedef.cached_result:
            self.benchmark = benchmark = fixturedef.cached_result[0]
            if self.turns is not None and hasattr(benchmark, "pedantic"):
                benchmark.__class__ = with_rounds(type(benchmark), self.turns)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self):
        yield
        self.timing = timing_of(self.benchmark)

    def pytest_runtest_logreport(self, report):
        category = self.session.config.hook.pytest_report_teststatus(report=report, config=self.session.config)[0]
        if category in FAILED:
            category = "failed" if report.when == "call" else "error"
        if category and category != "rerun":
            self.reports.append((category, report))
        self.seconds += report.duration

    @pytest.fixture
    def stele_value(self):
        """stele_value(name, value) records what a test computed, to compare it between two environments."""
        return self.record_value

    # what the host asks for

    def run(self, host, name, following=None):
        self.perform(name, following)
        category, report = self.decisive()
        message, place = ("", "") if report is None else crash_of(report, self.folder)
        return outcome(category, message, place, self.seconds, self.computed, self.timing)

    def rounds(self, host, task, steps, batch, turn=None, following=None, profile=0, sampler=None, **_):
        self.turns = Turns(host, steps, batch, turn)
        self.turns.profiler = functools.partial(profiling.profile, least=profile, sampler=sampler) if profile else None
        item = self.items[task]
        marker = item.get_closest_marker("benchmark")
        options = dict(marker.kwargs) if marker else {}
        self.turns.clock = options.get("timer") or clock_of(self.session.config)
        item.add_marker(pytest.mark.benchmark(**dict(options, timer=self.turns)), append=False)
        if self.session.config.pluginmanager.hasplugin("timeout"):  # others' turns would count
            item.add_marker(pytest.mark.timeout(0), append=False)
        process.reset_peak_memory()
        try:
            self.perform(task, following)
        finally:
            turns, self.turns = self.turns, None
        category, report = self.decisive()
        if category in FAILED:
            message, place = crash_of(report, self.folder)
            raise RuntimeError("{} {}: {} ({})".format(task, category, message, place))
        if not turns.seconds:
            raise RuntimeError("{} timed nothing: its benchmark fixture was not called".format(task))
        return timed(turns.seconds, turns.calls, turns.profile)

    def perform(self, name, following):
        """Run a test as pytest does; ``following`` is the test that runs next, for which fixtures are kept."""
        self.reports, self.seconds, self.computed, self.counts = [], 0.0, {}, {}
        self.benchmark, self.timing = None, None
        self.item = item = self.items[name]
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=self.items.get(following))
        finally:
            self.item = None

    def decisive(self):
        """Return the outcome of the last test, and the report that decides it."""
        failed = [each for each in self.reports if each[0] in FAILED]
        return (failed or [each for each in self.reports if each[1].when == "call"] or self.reports or [NO_REPORT])[0]

    def record(self, name, value, place):
        """Keep a value that an assertion of the running test compares; ``place`` is FILE:LINE in the user's folder."""
        if self.item is not None:
            self.record_value("{} at {}".format(name, os.path.relpath(place, self.folder)), value)

    def record_value(self, name, value):
        self.counts[name] = count = self.counts.get(name, 0) + 1
        numbered = name if count == 1 else "{} #{}".format(name, count)
        try:
            parts = values.describe(value)
        except ValueError:
            parts = {"": {"type": "too large", "text": values.text_of(value)}}
        if len(self.computed) >= values.MOST:  # all further values are one text
            before = self.computed.get(FURTHER, {"text": ""})["text"]
            numbered, parts = FURTHER, {"": {"type": "digest", "text": values.digest([before, numbered, parts])}}
        self.computed.update({numbered + part: description for part, description in parts.items()})

    turns = None  # of the rounds that are timed


NO_REPORT = ("error", None)


class Turns:
    """The timer of pytest-benchmark's rounds: it waits for its turn when a round begins, and keeps the durations."""

    def __init__(self, host, rounds, calls, turn):
        self.host, self.rounds, self.calls, self.turn = host, rounds, calls, turn
        self.clock, self.seconds, self.start = perf_counter, [], None
        self.profiler, self.profile = None, None  # what profiles a function, and what it showed

    def __call__(self):
        if self.start is None:
            if self.turn is not None:
                self.host.pause(len(self.seconds))
            self.start = self.clock()
            return self.start
        now = self.clock()
        self.seconds.append((now - self.start) / self.calls)
        self.start = None
        return now


def with_rounds(kind, turns):
    """Return the class of a benchmark fixture whose number of rounds and calls is that of ``turns``.

    ``pedantic`` stays as it is: then the test says how many rounds there are.
    """

    class Benchmark(kind):
        def __call__(self, function, *args, **kwargs):
            return self.pedantic(
                function, args=args, kwargs=kwargs, rounds=turns.rounds, iterations=turns.calls, warmup_rounds=1
            )

        def pedantic(
            self, target, args=(), kwargs=None, setup=None, teardown=None, rounds=1, warmup_rounds=0, iterations=1
        ):
            turns.calls = iterations
            result = super(Benchmark, self).pedantic(
                target, args, kwargs, setup, teardown, rounds, warmup_rounds, iterations
            )
            if turns.profiler is not None:
                turns.profile = turns.profiler(functools.partial(call, target, args, kwargs, setup, teardown))
            return result

    return Benchmark


def call(function, args, kwargs, setup, teardown):
    """Call a function once as ``pedantic`` does. Its setup and teardown count, too."""
    args, kwargs = (setup and setup()) or (args, kwargs or {})
    function(*args, **kwargs)
    if teardown is not None:
        teardown(*args, **kwargs)


def timing_of(benchmark):
    """Return what a benchmark fixture has timed; None if it is disabled, or was not called."""
    stats = getattr(benchmark, "stats", None)
    if stats is None or not getattr(stats.stats, "data", None):
        return None
    return {"seconds": stats.stats.min, "calls": stats.iterations, "rounds": len(stats.stats.data)}


def clock_of(config):
    """Return the timer that the user's options select."""
    timer = getattr(config.option, "benchmark_timer", None)
    return getattr(timer, "target", None) or perf_counter


def switch_off(options):
    storage = {"benchmark_storage": "file://" + os.path.join(os.environ["TMPDIR"], "benchmarks")}
    for name, value in dict(SWITCHED_OFF, **storage).items():
        if hasattr(options, name):
            setattr(options, name, value)


def stop_writing():
    """Keep pytest from writing bytecode beside the tests: it does so itself, because it rewrites assertions."""
    from _pytest.assertion import rewrite

    rewrite.try_makedirs = lambda *_, **__: False  # then it does not write


def crash_of(report, folder):
    """Return the message of a failed, skipped or expected failure in one line, and its place as FILE:LINE."""
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):  # of a skipped test: file, line, reason
        path, line, reason = longrepr
        return first_line(str(reason)), "{}:{}".format(os.path.relpath(str(path), folder), line)
    crash = getattr(longrepr, "reprcrash", None)
    if crash is not None:
        return first_line(crash.message), "{}:{}".format(os.path.relpath(str(crash.path), folder), crash.lineno)
    text = str(longrepr or getattr(report, "wasxfail", "")).strip()
    return (text.splitlines() or [""])[-1].strip()[:500], ""


def first_line(text):
    """Return the first line with a text, after the name of the exception."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    is_name = lines[0].endswith(":") and len(lines) > 1
    return (" ".join(lines[:2]) if is_name else lines[0])[:500]
