"""Programs of the user in two environments that differ in one variable, RELEASE: what each of them does is planted."""

import json
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele.environments import packages
from stele.gate import record as records
from stele.gate import replay

SUITE = """
import os, signal, time
import numpy, pytest
from numpy.testing import assert_allclose

NEW = os.environ["RELEASE"] == "new"

def test_passes(): pass
def test_fails_in_new(): assert not NEW, "another result"
def test_is_fixed(): assert NEW
def test_fails_in_both(): assert False
@pytest.fixture
def broken(): assert not NEW
def test_error_in_a_fixture(broken): pass
@pytest.mark.skip(reason="not now")
def test_skipped(): pass
@pytest.mark.xfail(strict=True)
def test_unexpected_success_is_a_failure(): assert NEW
@pytest.mark.parametrize("number", [1, 2])
def test_of_parameters(number): assert not (NEW and number == 2)
class TestClass:
    def test_method(self): assert not NEW
def test_crash():
    if NEW: os.kill(os.getpid(), signal.SIGSEGV)
def test_after_the_crash(): pass
if not NEW:
    def test_only_in_old(): pass
else:
    def test_only_in_new(): pass
def test_value(stele_value):
    exact = numpy.linspace(0, 1, 10, dtype="float32")
    stele_value("equal", exact)
    stele_value("rounded", exact * numpy.float32(1 + 1e-7 * NEW))
    stele_value("changed", exact * numpy.float32(1 + 1e-3 * NEW))
def test_value_of_an_assertion():
    assert_allclose(1 + 1e-4 * NEW, 1, rtol=1e-2)
    assert 2.0 + 1e-4 * NEW == pytest.approx(2, rel=1e-2)
"""
# what is said of each test that is not the same in both
PLANTED = {
    "test_fails_in_new": "BROKEN",
    "test_error_in_a_fixture": "BROKEN",
    "test_unexpected_success_is_a_failure": "BROKEN",
    "test_of_parameters[2]": "BROKEN",
    "TestClass::test_method": "BROKEN",
    "test_crash": "BROKEN",
    "test_only_in_old": "MISSING",
    "test_value": "BROKEN",
}


@pytest.fixture
def gate(describe, tmp_path, monkeypatch, capsys):
    """gate(*options, program) -> (exit code, the document of --json) of OLD and NEW in the folder of the project."""
    for release in ("old", "new"):
        describe(release, framework="numpy")
        with (tmp_path / f"{release}.toml").open("a") as file:
            file.write(f'\n[variables]\nRELEASE = "{release}"\n')
    monkeypatch.delenv("RELEASE", raising=False)
    monkeypatch.setattr("stele.measuring.processors.count", lambda: 2)
    monkeypatch.setattr("stele.gate.judgement.LEVEL", 0.2)  # fewer passes are enough
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)

    def gate(*options, new="new", program=()):
        command = ["gate", "old", new, "--json", "gate.json", "--budget", "2m", *options]
        code = entry_point.main([*command, *(["--", *program] if program else [])])
        path = Path("gate.json")
        return code, json.loads(path.read_text()) if path.exists() else capsys.readouterr().err

    return gate


def statuses(document):
    """Return the status of each test that has a verdict of its own, by its name without the file."""
    verdicts = [each for each in document["verdicts"] if "::" in each["task"] and each["metric"] != "control"]
    return {each["task"].partition("::")[2]: each["status"] for each in verdicts}


def message(document, metric):
    [verdict] = [each for each in document["verdicts"] if each["metric"] == metric and "::" not in each["task"]]
    return verdict["message"]


@pytest.mark.slow
def test_each_planted_difference_has_the_right_word(gate):
    Path("test_suite.py").write_text(SUITE)
    code, document = gate("--only-outcomes", program=["pytest"])
    assert code == 1
    assert statuses(document) == PLANTED
    outcomes = message(document, "outcomes")
    assert "1 fixed: test_suite.py::test_is_fixed" in outcomes
    assert "1 fails in both: test_suite.py::test_fails_in_both" in outcomes
    assert "1 only in NEW: test_suite.py::test_only_in_new" in outcomes and "1 skipped in both" in outcomes
    [crash] = [each for each in document["verdicts"] if each["task"].endswith("test_crash")]
    assert "killed by SIGSEGV" in crash["message"] and "of NEW, in 0 of" in crash["message"]
    [values] = [each for each in document["verdicts"] if each["metric"] == "values" and "::" in each["task"]]
    assert "changed moved by 0.001" in values["message"] and "rounded" not in values["message"]
    of_assertions = message(document, "values")
    assert "assert_allclose at test_suite.py:" in of_assertions and "approx at test_suite.py:" in of_assertions


@pytest.mark.slow
def test_a_release_beside_itself_passes_and_nothing_is_written_beside_the_tests(gate):
    Path("test_suite.py").write_text(SUITE)
    Path("conftest.py").touch()
    code, document = gate("--only-outcomes", new="old", program=["pytest", "--strict-markers"])
    assert (code, statuses(document)) == (0, {})
    assert sorted(path.name for path in Path().iterdir()) == [".stele", "conftest.py", "gate.json", "test_suite.py"]


@pytest.mark.slow
def test_the_tests_of_an_editable_package_can_be_gated(gate, monkeypatch):
    Path("mine.py").write_text("ANSWER = 42")
    Path("test_suite.py").write_text("import mine\ndef test_answer(): assert mine.ANSWER == 42")
    listed = packages.listed

    def with_mine(python):
        listing = listed(python)
        mine = packages.Package("1.0", "hash", sources=(Path.cwd(),))
        return listing._replace(packages={**listing.packages, "mine": mine})

    monkeypatch.setattr(packages, "listed", with_mine)
    monkeypatch.setattr(packages, "listings", {})
    code, document = gate("--only-outcomes", program=["pytest"])
    assert (code, statuses(document)) == (0, {}), document


@pytest.mark.slow
def test_a_file_that_cannot_be_imported_in_new_is_one_verdict(gate):
    Path("test_good.py").write_text("def test_good(): pass")
    Path("test_bad.py").write_text(
        "import os\nassert os.environ['RELEASE'] == 'old', 'no such name'\ndef test_a(): pass"
    )
    code, document = gate("--only-outcomes", program=["pytest"])
    [bad] = [each for each in document["verdicts"] if each["status"] == "BROKEN"]
    assert code == 1 and bad["task"] == "test_bad.py" and "no such name" in bad["message"]
    assert "1 test passed in OLD and in NEW" in message(document, "outcomes")


@pytest.mark.slow
def test_a_suite_that_does_not_start_in_new_is_broken(gate):
    Path("conftest.py").write_text("import os\nassert os.environ['RELEASE'] == 'old', 'no start'")
    Path("test_a.py").write_text("def test_a(): pass")
    code, document = gate("--only-outcomes", program=["pytest"])
    [verdict] = document["verdicts"]
    assert (code, verdict["status"], verdict["task"]) == (1, "BROKEN", "start of pytest")


@pytest.mark.slow
def test_a_test_that_hangs_in_new_is_broken_and_the_others_run(gate):
    Path("test_a.py").write_text(
        "import os, time\n"
        "def test_hangs(): time.sleep(0 if os.environ['RELEASE'] == 'old' else 1000)\n"
        "def test_b(): pass"
    )
    code, document = gate("--only-outcomes", "--worker-timeout", "2", program=["pytest"])
    assert (code, statuses(document)) == (1, {"test_hangs": "BROKEN"})
    assert "1 test passed" in message(document, "outcomes")


@pytest.mark.slow
def test_a_flaky_test_is_named_and_not_counted(gate, monkeypatch):
    monkeypatch.setattr("stele.gate.judgement.LEVEL", 0.01)
    Path("test_a.py").write_text(
        "import random\ndef test_flaky(): assert random.SystemRandom().random() < 0.5\ndef test_good(): pass"
    )
    code, document = gate("--only-outcomes", new="old", program=["pytest"])
    assert code == 0 and statuses(document) == {}


@pytest.mark.slow
def test_benchmarks_are_cells_whose_rounds_take_turns(gate):
    pytest.importorskip("pytest_benchmark")
    Path("test_a.py").write_text(
        "import os, time\n"
        "SLOWER = 1.5 if os.environ['RELEASE'] == 'new' else 1\n"
        "def work(factor=1):\n"
        "    end = time.perf_counter() + 0.002 * factor\n"
        "    while time.perf_counter() < end: pass\n"
        "    return 3\n"
        "def test_slower(benchmark): assert benchmark(work, SLOWER) == 3\n"
        "def test_same(request): request.getfixturevalue('benchmark').pedantic(work, rounds=8, iterations=2)\n"
        "def test_fails(benchmark):\n    benchmark(work)\n    assert False\n"
        "def test_no_benchmark(): pass\n"
    )
    code, document = gate("--parallel", "1", "--fail-fast", program=["pytest", "-p", "benchmark"])
    verdicts = {(each["task"].partition("::")[2], each["metric"]): each for each in document["verdicts"]}
    assert code == 1
    assert verdicts["test_slower", "round"]["status"] == "REGRESSED"
    assert verdicts["test_slower", "round"]["ratio"]["middle"] > 1.1
    assert ("test_same", "round") in verdicts
    assert ("test_fails", "round") not in verdicts
    [record] = Path(".stele/gates").glob("*.jsonl")
    launches = [json.loads(line) for line in record.read_text().splitlines()]
    steps = [launch["runs"]["new"]["steps"] for launch in launches if launch.get("runs")]
    assert {each["batch"] for each in steps} == {2, 5} and {len(each["seconds"]) for each in steps} >= {8}
    interrupted = replay.judge(replay.records.read(record))
    timed = {each.task.partition("::")[2] for each in interrupted if each.metric == "round"}
    assert timed == {"test_slower", "test_same"}


GOLDEN = (
    "import os\nimport numpy\nfrom numpy.testing import assert_allclose\n"
    "def test_rounded():\n"
    "    new = os.environ['RELEASE'] == 'new'\n"
    "    assert_allclose(numpy.float32(0.1) * numpy.float32(1 + 2e-7 * new), numpy.float32(0.1), rtol=1e-8)\n"
    "def test_changed(): assert 2.0 + (os.environ['RELEASE'] == 'new') == pytest.approx(2)\n"
    "def test_good(): pass\n"
    "import pytest\n"
)


@pytest.mark.slow
def test_a_golden_value_that_fails_in_new_says_whether_it_is_rounding(gate):
    Path("test_a.py").write_text(GOLDEN)
    code, document = gate("--only-outcomes", program=["pytest"])
    messages = {each["task"].partition("::")[2]: each["message"] for each in document["verdicts"]}
    assert code == 1
    assert "assert_allclose at test_a.py:6 moved by 2.2e-07" in messages["test_rounded"]
    assert "OLD itself moves by 0: within rounding" in messages["test_rounded"]
    assert "approx at test_a.py:7 moved by 0.5, OLD itself moves by 0: changed" in messages["test_changed"]
    kinds = {each["item"].partition("::")[2]: each["kind"] for each in document["values"]}
    assert kinds == {"test_rounded": "within rounding", "test_changed": "changed"}


@pytest.mark.slow
def test_failures_within_rounding_can_be_accepted_and_the_new_values_are_printed(gate, capsys):
    Path("test_a.py").write_text(GOLDEN)
    code, document = gate("--only-outcomes", "--accept", "rounding", program=["pytest"])
    assert code == 1 and statuses(document) == {"test_changed": "BROKEN"}
    assert "1 fails in NEW within rounding: test_a.py::test_rounded" in message(document, "outcomes")
    capsys.readouterr()
    assert entry_point.main(["values", "--json", "values.json"]) == 0
    said = capsys.readouterr().out
    assert "test_a.py::test_changed  approx at test_a.py:7\n    2 → 3  (moved by 0.5" in said
    [rounded, changed] = json.loads(Path("values.json").read_text())["values"]
    assert (changed["old"]["numbers"], changed["new"]["numbers"]) == ([2.0], [3.0]) and rounded["item"]


@pytest.mark.slow
def test_a_fixture_whose_teardown_fails_in_new_and_a_test_that_needs_another_one_are_found(gate):
    Path("test_a.py").write_text(
        "import os, pytest\n"
        "SEEN = []\n"
        "@pytest.fixture(scope='module')\n"
        "def database():\n"
        "    yield 1\n"
        "    assert os.environ['RELEASE'] == 'old', 'cannot close'\n"
        "def test_first(database): SEEN.append(os.environ['RELEASE'])\n"
        "def test_order(): assert 'new' not in SEEN\n"
        "def test_last(): pass\n"
    )
    code, document = gate("--only-outcomes", program=["pytest"])
    assert code == 1 and statuses(document) == {"test_order": "BROKEN", "test_last": "BROKEN"}


@pytest.mark.slow
def test_a_process_that_fails_at_its_end_in_new_is_broken(gate):
    Path("conftest.py").write_text("import atexit, os\nif os.environ['RELEASE'] == 'new': atexit.register(os.abort)")
    Path("test_a.py").write_text("def test_a(): pass")
    code, document = gate("--only-outcomes", program=["pytest"])
    [broken] = [each for each in document["verdicts"] if each["status"] == "BROKEN"]
    assert code == 1 and broken["task"] == "the end of the process" and "SIGABRT" in broken["message"]


@pytest.mark.slow
@pytest.mark.parametrize("hook", ["pytest_unconfigure", "pytest_sessionfinish"])
def test_a_suite_whose_end_fails_in_new_is_broken(gate, hook):
    Path("conftest.py").write_text(f"import os\ndef {hook}(): assert os.environ['RELEASE'] == 'old'")
    Path("test_a.py").write_text("def test_a(): pass")
    code, document = gate("--only-outcomes", program=["pytest"])
    assert code == 1 and [each["task"] for each in document["verdicts"] if each["status"] == "BROKEN"]


@pytest.mark.slow
def test_assertions_after_a_change_of_the_folder_are_recorded_and_never_fail_a_test(gate):
    Path("test_a.py").write_text(
        "import os, pytest, shutil, tempfile\n"
        "def test_leaves(): folder = tempfile.mkdtemp(); os.chdir(folder); shutil.rmtree(folder)\n"
        "def test_after(): assert 1.0 == pytest.approx(1.0)\n"
    )
    code, document = gate("--only-outcomes", new="old", program=["pytest"])
    assert code == 0 and message(document, "values") == "1 value: 1 equal"


@pytest.mark.slow
def test_a_benchmark_that_new_does_not_time_is_named(gate):
    pytest.importorskip("pytest_benchmark")
    Path("test_a.py").write_text(
        "import os\ndef test_a(benchmark):\n    if os.environ['RELEASE'] == 'old': benchmark(sum, [1])\n"
    )
    _, document = gate(program=["pytest", "-p", "benchmark"])
    assert "timed in some launches only, so not judged: test_a.py::test_a" in message(document, "outcomes")


@pytest.mark.slow
def test_a_function_is_called_and_its_result_is_compared(gate):
    Path("lib.py").write_text(
        "import os\nimport numpy\n"
        "def example_inputs(): return numpy.ones(3),\n"
        "def f(x): return {'sum': x.sum() + (os.environ['RELEASE'] == 'new')}\n"
    )
    code, document = gate("--only-outcomes", "--function", "lib.py:f")
    [values] = [each for each in document["verdicts"] if each["metric"] == "values"]
    assert code == 1 and "return value['sum'] moved by 0.33" in values["message"]


@pytest.mark.slow
def test_a_function_that_raises_in_new_is_broken_with_its_place(gate):
    Path("lib.py").write_text(
        "import os\ndef f():\n    if os.environ['RELEASE'] == 'new':\n        raise KeyError('x')\n"
    )
    code, document = gate("--only-outcomes", "--function", "lib:f")
    [verdict] = [each for each in document["verdicts"] if each["status"] == "BROKEN"]
    assert code == 1 and verdict["message"].startswith("KeyError: 'x' (lib.py:4)")


@pytest.mark.slow
def test_a_coroutine_is_refused_because_its_body_does_not_run(gate):
    Path("lib.py").write_text("async def f(): raise ValueError")
    code, error = gate("--function", "lib.py:f")
    assert code == 2 and "it returns a coroutine, whose body does not run" in error


@pytest.mark.slow
def test_a_function_that_needs_arguments_shows_its_signature(gate):
    Path("lib.py").write_text("def f(x, *, y): pass")
    code, error = gate("--function", "lib.py:f")
    assert code == 2 and "lib.py:f needs arguments: f(x, *, y). Write a function example_inputs()" in error


@pytest.mark.slow
def test_an_asv_suite_is_found_with_its_parameters_and_its_caches(gate):
    pytest.importorskip("asv_runner")
    Path("benchmarks").mkdir()
    Path("benchmarks/__init__.py").touch()
    Path("benchmarks/suite.py").write_text(
        "import os, time\n"
        "NEW = os.environ['RELEASE'] == 'new'\n"
        "def work(factor):\n"
        "    end = time.perf_counter() + 0.001 * factor\n"
        "    while time.perf_counter() < end: pass\n"
        "class TimeSuite:\n"
        "    params = [[1, 2]]\n"
        "    param_names = ['n']\n"
        "    def setup_cache(self): return 1.5 if NEW else 1\n"
        "    def setup(self, factor, n): self.factor = factor\n"
        "    def time_work(self, factor, n): work(n * self.factor)\n"
        "def track_answer(): return 42 + NEW\n"
        "def peakmem_list(): return [0] * (2_000_000 if NEW else 1_000)\n"
        "def time_broken(): assert not NEW\n"
    )
    code, document = gate("--parallel", "1", "--asv", "benchmarks")
    found = {(each["task"].partition(".")[2], each["metric"]): each["status"] for each in document["verdicts"]}
    assert code == 1
    assert found["TimeSuite.time_work(1)", "round"] == found["TimeSuite.time_work(2)", "round"] == "REGRESSED"
    assert found["time_broken", "outcome"] == "BROKEN" and found["track_answer", "values"] == "BROKEN"
    assert found["peakmem_list", "memory"] == "REGRESSED" and ("time_broken", "round") not in found


TRAIN = (
    "import json, os, time\n"
    "new = os.environ['RELEASE'] == 'new'\n"
    "time.sleep(0.1)\n"
    "with open(os.environ['STELE_REPORT'], 'w') as report:\n"
    "    speed = {'metric': 'tokens_per_second', 'value': 700 if new else 800, 'better': 'higher'}\n"
    "    print(json.dumps(speed), file=report)\n"
    "    print(json.dumps({'value': 'loss', 'step': 3, 'number': 0.5}), file=report)\n"
)


@pytest.mark.slow
def test_a_command_is_judged_by_its_exit_code_its_time_and_what_it_reports(gate):
    Path("train.py").write_text(TRAIN)
    code, document = gate("--parallel", "1", "--fail-fast", program=["python", "train.py"])
    verdicts = {each["metric"]: each for each in document["verdicts"]}
    assert code == 1 and verdicts["tokens_per_second"]["status"] == "REGRESSED"
    assert verdicts["tokens_per_second"]["message"].startswith("14.3 % lower")
    assert verdicts["values"]["message"] == "1 value: 1 equal"


@pytest.mark.slow
def test_a_metric_that_a_command_reports_can_be_judged_alone_and_has_thresholds(gate, capsys):
    Path("train.py").write_text(TRAIN)
    options = ("--metric", "tokens_per_second", "--tolerance", "tokens_per_second=20%", "--parallel", "1")
    code, document = gate(*options, program=["python", "train.py"])
    timed = [each for each in document["verdicts"] if each["ratio"] and each["metric"] != "control"]
    assert code == 0 and [(each["metric"], each["status"]) for each in timed] == [("tokens_per_second", "PASS")]
    [path] = Path(".stele/gates").glob("*.jsonl")
    judged = replay.judge(records.read(path))
    assert [(each.metric, each.status) for each in judged if each.ratio and each.metric != "control"] == [
        ("tokens_per_second", "PASS")
    ]
    code, _ = gate("--metric", "tokens", "--fail-fast", program=["python", "train.py"])
    assert code == 2
    assert "reports no metric 'tokens' with a direction. It reports tokens_per_second." in capsys.readouterr().err


@pytest.mark.slow
def test_the_numbers_of_a_report_are_metrics_and_values(gate):
    Path("bench.py").write_text(
        "import json, os\n"
        "loss = 1.0 + (os.environ['RELEASE'] == 'new')\n"
        "json.dump({'runs': [{'score': 3.0, 'loss': loss}]}, open('r.json', 'w'))"
    )
    options = ("--only-outcomes", "--report", "r.json", "--better", "higher=runs[0].score")
    code, document = gate(*options, program=["python", "bench.py"])
    [values] = [each for each in document["verdicts"] if each["metric"] == "values"]
    assert code == 1 and "runs[0].loss moved by 1" in values["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "message"),
    [
        (["pytest", "--no-such-option"], "pytest ended before it ran a test: a wrong option"),
        (["pytest", "no_such_file.py"], "pytest ended before it ran a test: a wrong option"),
        (["no-such-program"], "no-such-program: No such file or directory"),
        (["python", "-c", "raise SystemExit(3)"], "exit code 3"),
    ],
)
def test_what_does_not_run_in_old_is_an_error_of_the_user(gate, program, message):
    code, said = gate("--only-outcomes", program=program)
    assert code in (2, 3) and message in str(said)


@pytest.mark.parametrize(
    ("options", "program", "message"),
    [
        (["--only-outcomes"], [], "--only-outcomes needs code of your own"),
        (["--model", "net.py:f"], ["pytest"], "the command after -- and --model exclude each other"),
        (["--task", "cnn"], ["pytest"], "--task and --phase have no effect with the command after --"),
        (["--optimizer", "torch.optim:SGD"], ["pytest"], "--optimizer has no effect without --model"),
        (["--report", "r.json"], ["pytest"], "--report needs a command of your own"),
        (["--better", "more=x"], ["python", "x.py"], "--better more=x is not of the form higher=NAME,NAME"),
        (["--function", "f"], [], "--function f names no function"),
        (["--precision", "bf16"], ["pytest"], "--precision has no effect on pytest"),
        (["--only-outcomes", "--metric", "round"], ["pytest"], "--only-outcomes times nothing"),
        ([], ["uv", "run", "pytest"], "uv runs a command in an environment of its own"),
        ([], ["/usr/bin/python3", "x.py"], "/usr/bin/python3 is one interpreter for OLD and NEW"),
        (["--asv", "none"], [], "--asv none: there is no such folder"),
        (["--function", "no.py:f"], [], "--function no.py:f: there is no file"),
        (["--metric", "step"], ["pytest"], "Unknown metric 'step'"),
        (["--tolerance", "step=3%"], ["pytest"], "step=N% has no effect"),
        (["--devices", "2"], ["pytest"], "Code of your own is measured on one device"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_runs(gate, options, program, message):
    code, error = gate(*options, program=program)
    assert code == 2 and message in error


def test_a_command_without_a_program_refuses_words_after_the_dashes(capsys):
    assert entry_point.main(["doctor", "--", "pytest"]) == 2
    assert "this command judges no program of yours" in capsys.readouterr().err


def test_the_command_that_continues_a_gate_has_its_options_before_the_dashes():
    from stele.report import gate as pages

    words = ["gate", "old", "new", "--budget", "1m", "--", "pytest", "--resume"]
    assert pages.continuation(words, "5m") == "stele gate old new --resume --budget 5m -- pytest --resume"


SLOWER = """
import os, sys
def work(): return sum(sorted(range(40000 if os.environ["RELEASE"] == "new" else 2000), key=last_digit)) * 0
def last_digit(number): return number % 10
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("code.py", SLOWER, ["--function", "code.py:work"]),
        ("test_b.py", SLOWER + "def test_work(benchmark): benchmark.pedantic(target=work, rounds=5)", ["--", "pytest"]),
        ("benchmarks/b.py", SLOWER + "def time_work(): work()", ["--asv", "benchmarks"]),
    ],
)
def test_a_function_and_benchmarks_are_explained(gate, capsys, monkeypatch, name, text, words):
    monkeypatch.setattr("stele.explain.launches.find_sampler", lambda: None)  # then cProfile counts calls
    Path(name).parent.mkdir(exist_ok=True)
    (Path(name).parent / "__init__.py").touch()
    Path(name).write_text(text)
    assert entry_point.main(["explain", "old", "new", "--times", "1", *words]) == 0
    out = capsys.readouterr().out
    [row] = [line.split() for line in out.splitlines() if ":last_digit" in line]
    assert row[-2:] == ["2,000", "40,000"] and "call: " in out


@pytest.mark.slow
def test_a_gate_explains_a_function_that_is_slower(gate, monkeypatch, capsys):
    monkeypatch.setattr("stele.explain.launches.find_sampler", lambda: None)
    Path("code.py").write_text(SLOWER)
    code, _ = gate("--explain", "--metric", "call", "--fail-fast", "--function", "code.py:work")
    assert code == 1 and "REGRESSED: code.py:work call, " in capsys.readouterr().err
    [explanation] = Path(".stele/gates").glob("*.explanation.json")
    assert "code.py:work call" in json.loads(explanation.read_text())["cells"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--", "python", "code.py"], "Profile a function of it"),
        (["--bundle=b.zip", "--function", "code.py:work"], "--bundle needs a task or --model"),
        (["--accept=rounding", "--", "pytest"], "--accept has no effect on an explanation"),
        (["--", "pytest", "-k", "absent"], "nothing in OLD can be timed"),
    ],
)
def test_what_cannot_be_explained_is_refused(gate, capsys, words, message):
    Path("code.py").write_text(SLOWER)
    assert entry_point.main(["explain", "old", "new", *words]) == 2
    assert message in capsys.readouterr().err
