"""Arbitrary and mutated files are read completely, or refused with an error that the user can act on."""

import dataclasses
import json
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stele import environments, schema
from stele.commands import parity
from stele.data import cache
from stele.environments import ORACLE, Environment, changes, description, lockfiles, packages
from stele.gate import baseline, record
from stele.measuring import lock, store
from stele.measuring.run import Run
from stele.parity import accuracy, defaults, golden_numbers, ladder
from stele.releases import frameworks, history, index
from stele.report import results
from tests.fuzz.hostile import EXTREME, TEXT, changed_bytes, changed_text, documents, refuses_or_returns

RUN = json.loads((Path(__file__).parent / "run.json").read_text())
NUMPY = dataclasses.replace(ORACLE, requirements={"numpy": "its release is then known"})
GOLDEN = golden_numbers.load("gru")


@pytest.fixture(scope="session")
def file(tmp_path_factory):
    """Return the path of a file that each example overwrites."""
    return tmp_path_factory.mktemp("fuzz") / "file.json"


@given(content=documents(RUN))
@example(content=b"\xff")
def test_a_run_that_loads_can_be_shown(file, content):
    file.write_bytes(content)
    run = refuses_or_returns(store.load, file)
    if run is not None:
        results.line(run)
        results.terminal([run])
        refuses_or_returns(results.markdown, [run])


CONDITIONS = {"seconds": 1.5, "steal": 0.0, "foreign": 0.0, "gpu": None}
RECORD = [
    {"schema": 1, "machine": {"processor": "Abacus"}, "old": "jax==1"},
    {"key": ["long", "gru infer", 0], "took": 1.5, "runs": {"old": RUN["run"]}, "rounds": [], "conditions": CONDITIONS},
    {
        "key": ["parity", "gru", "old"],
        "took": 2,
        "failure": None,
        "findings": [{"rung": 1, "status": "agrees", "message": ""}],
    },
]


WITHOUT_VERSIONS = [RECORD[0], {"key": ["long"], "took": 1, "runs": {"old": {"when": "2026"}}}]
WITHOUT_STATUS = [RECORD[0], {"key": ["parity"], "took": 1, "findings": [{"rung": 1}]}]


def lines(values):
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@given(content=changed_bytes(lines(RECORD)) | st.tuples(*map(documents, RECORD)).map(b"\n".join) | st.binary())
@example(content=b"[" * 10_000 + b"\n")
@example(content=lines(WITHOUT_VERSIONS))
@example(content=lines(WITHOUT_STATUS))
def test_a_record_of_a_gate_is_resumed_or_refused(file, content):
    file.write_bytes(content)
    log = refuses_or_returns(record.resume, file)
    if log is not None:
        log.spent, log.launches, log.versions("old")


LAUNCH = {
    "when": "2026-01-02T03:04:05.678+00:00",
    "step": 0.1,
    "first-step": 0.5,
    "import": 1.0,
    "host-memory": 2**20,
    "device-memory": None,
    "median": 0.1,
    "p90": 0.2,
}
BASELINE = {"schema": 1, **schema.to_json(baseline.facts([schema.convert(RUN["run"], Run)])), "launches": [LAUNCH] * 6}


@given(content=documents(BASELINE))
@example(content=b"[" * 10_000)
def test_a_baseline_is_read_or_refused(file, content):
    file.write_bytes(content)
    refuses_or_returns(baseline.read, file)


@given(content=changed_bytes(golden_numbers.file("gru", None, None).read_bytes()) | st.binary())
def test_golden_numbers_are_compared_or_refused(file, content):
    golden_numbers.file("gru", None, file.parent).write_bytes(content)
    golden = refuses_or_returns(golden_numbers.load, "gru", folder=file.parent)
    numbers = {**GOLDEN, "unequal": {}, "repeats": True, "tracked": False}
    if golden is not None:
        refuses_or_returns(ladder.compare, numbers, golden, task="gru", precision="fp32")


BANDS = {
    "schema": 1,
    "bands": {"gru": {"quick": {"0123456789abcdef": {"accuracies": [0.8] * 5, "source": "s"}}}},
}


@given(content=documents(BANDS))
def test_accuracy_bands_are_read_or_refused(file, content):
    file.write_bytes(content)
    recorded = refuses_or_returns(accuracy.entry, "gru", "quick", "0123456789abcdef", file)
    if recorded is not None:
        accuracy.measured_band(recorded)


@given(content=documents({"schema": 1, "defaults": {"release of torch": "2.4", "lr": 0.1}}))
def test_recorded_defaults_are_compared_or_refused(file, content):
    defaults.record_path(NUMPY, metadata.version("numpy"), file.parent).write_bytes(content)
    table = refuses_or_returns(defaults.load, NUMPY, file.parent)
    if table is not None:
        defaults.changes(table, {"lr": 0.2})


FINDING = {"rung": 3, "status": "agrees", "message": "", "error": 1e-7}
RECIPE = {
    "environment": "torch",
    "task": "cnn",
    "day": "2026-01-02",
    "versions": {"torch": "2.4"},
    "rungs": [FINDING],
}
LADDER = {"schema": 1, "settings": {"device": "cpu", "threads": 1}, "recipes": [RECIPE]}


@given(content=documents(LADDER))
def test_a_ladder_file_is_read_or_refused(file, content):
    file.write_bytes(content)
    refuses_or_returns(parity.merge, parity.ParityOptions(merge=(file,)))


ASV = {"version": 2, "results": {"recipes.track_step": [[0.1, None, float("nan")], [["'gru'"], ["'train'"]]]}}
BENCHMARK = {"name": "recipes.track_step", "params": [["'gru'"], ["'train'", "'infer'"], ["'tuned'"]]}


@given(content=documents(ASV))
def test_a_result_of_asv_is_read_or_renamed(file, content):
    file.write_bytes(content)
    numbers = history.cells(BENCHMARK, history.load(file))
    assert all(value is None or isinstance(value, float | int) for value in numbers.values())


@given(content=documents({"schema": 1, "what": "stele gate", "pid": 12, "since": 1e9}))
def test_the_holder_of_the_lock_is_described(file, content):
    file.write_bytes(content)
    with file.open("rb") as opened:
        assert lock.holder(opened.fileno())


INDEX_ENTRY = {"origin": "official", "fingerprint": "01", "files": {"train_x": ["data/x.npy", 3]}}


@given(content=documents(INDEX_ENTRY))
@example(content=json.dumps({**INDEX_ENTRY, "files": {"train_x": ["../../outside", 3]}}).encode())
@example(content=json.dumps({**INDEX_ENTRY, "files": {"train_x": ["/etc/hostname", 3]}}).encode())
def test_an_index_entry_of_the_cache_leads_only_to_files_in_it(file, content):
    path = file.parent / "cache" / "data" / "key.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    (file.parent / "outside").write_text("abc")
    entry = cache.look_up(file.parent / "cache", "key")
    assert entry is None or all(each.is_relative_to(file.parent / "cache") for each in entry.files.values())


UPLOAD = {
    "packagetype": "bdist_wheel",
    "yanked": False,
    "upload_time_iso_8601": "2026-01-02T03:04:05.678Z",
    "requires_python": ">=3.10",
}


@given(content=documents({"releases": {"1.0": [UPLOAD], "2.0": [UPLOAD, UPLOAD]}}))
def test_an_answer_of_the_package_index_gives_releases_or_is_refused(file, content):
    answer = file.parent / "pypi" / "torch" / "json"
    answer.parent.mkdir(parents=True, exist_ok=True)
    answer.write_bytes(content)
    refuses_or_returns(index.releases_in_index, "torch", file.parent.as_uri())


DESCRIPTION = (Path(environments.FOLDER) / "openvino.toml").read_text()


@given(content=changed_bytes(DESCRIPTION.encode()) | st.binary() | TEXT.map(str.encode))
@example(content=b"label = 3\nframework = 4\n")
@example(content=b'label = "x"\nframework = "y"\nimports = "z"\n')
@example(content=b'label = "x"\nframework = "y"\nrequirements = ["z"]\npython = "3"\n')
@example(content=b"a = " + b"[" * 100_000)
@example(content=b"a = " + b"9" * 5000)
@example(content=b'name = "x"\nlabel = "x"\nframework = "y"\n')
@example(content=b'label = "x"\nframework = "y"\nlock = "z"\nprefer = "z"\n')
def test_a_description_gives_environments_or_is_refused(file, content):
    path = file.with_suffix(".toml")
    path.write_bytes(content)
    for environment in refuses_or_returns(description.read, path) or ():
        refuses_or_returns(environments.state, environment)
        environment.why_absent("cnn", "train", device="cpu", precision="fp32")


LOCKS = [path for path in (Path(__file__).parents[1] / "environments/lockfiles/samples").iterdir() if path.is_file()]


@pytest.mark.slow
@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
@given(data=st.data())
def test_a_lock_file_of_each_format_is_read_or_refused(file, path, data):
    text = path.read_text()
    content = data.draw(changed_text(text) | TEXT | EXTREME | st.just("torch==" + "9" * 5000))
    (file.parent / path.name).write_text(content, errors="replace")
    for allow_vcs in (False, True):
        refuses_or_returns(lockfiles.read, path.name, content, lambda name: text, allow_vcs=allow_vcs)
    refuses_or_returns(lockfiles.outline, path.name, content, lambda name: text)
    refuses_or_returns(lockfiles.mentions, path.name, content, changes.FRAMEWORKS)
    refuses_or_returns(packages.of_lock, file.parent / path.name)


@given(content=changed_bytes(b"torch==2.4.0 \\\n    --hash=sha256:00\nnumpy==2.0\n"))
def test_the_lock_file_of_a_build_gives_versions_or_is_refused(file, content):
    path = file.with_suffix(".lock")
    path.write_bytes(content)
    environment = Environment(name="toy", label="", framework="toy", lock=path)
    refuses_or_returns(environments.locked_versions, environment)


@given(content=changed_text("# Requires-Python: >=3.10\njax==0.9.2\njaxlib==0.9.2\n"))
def test_requirements_of_the_ledger_give_an_environment_or_are_refused(content):
    refuses_or_returns(frameworks.release_environment, "jax-0.9.2", content)
