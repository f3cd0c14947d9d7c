"""Arbitrary and mutated output of a worker gives a result or a WorkerError, never another exception."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring import measure
from stele.measuring.measure import Plan
from stele.measuring.run import Origin
from stele.measuring.settings import Settings
from stele.measuring.worker import Worker, WorkerError
from stele.parity import capabilities, defaults, examination, golden_numbers, ladder, reference
from stele.subjects.model import inspection
from stele.subjects.model.spec import Model
from tests.fuzz.hostile import JSON, changed_bytes, changed_json, documents
from tests.support.scripted_environments import INSPECTION

CPU = Settings(device="cpu", threads=1)
RUN = json.loads((Path(__file__).parent / "run.json").read_text())["run"]
OUTCOME = {name: RUN[name] for name in ("steps", "memory", "learning")}
CONFIGURATION = {
    "import_seconds": 1.5,
    "versions": {"torch": "2.4", "cuda": None},
    "flags": {"device": "cpu"},
}
HELLO = {"protocol": 1, "python": "3.11.7", "numpy": "2.4.6", "pid": 1}
REPORT = {"id": 1, "progress": {"phase": "train", "done": 1, "of": 3}}
LINE = {"id": 1, "result": HELLO}
ERROR = {"id": 1, "error": {"type": "ValueError", "message": "no", "traceback": ""}}


@pytest.fixture(scope="session")
def speaker(tmp_path_factory):
    """speaker(output) -> a Worker that writes these bytes, whatever it is asked, and closes its output."""
    folder = tmp_path_factory.mktemp("fuzz")

    @contextlib.contextmanager
    def speaker(output):
        (folder / "output").write_bytes(output)
        # it reads on: if it had ended, a request could not be sent, and the answer would not be read
        command = ("sh", "-c", 'cat "$0"; exec >&-; cat > /dev/null', str(folder / "output"))
        environment = Environment(name="x", label="X", framework="x", command=command)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("stele.measuring.worker.EXIT_TIMEOUT", 0.01)
            with Worker(environment, log=folder / "log", variables={}, timeout=20.0) as worker:
                yield worker

    return speaker


def lines(*messages):
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def results(*values):
    """Return the lines of a worker that answers its requests with these results."""
    return lines(*({"id": number, "result": value} for number, value in enumerate(values, 1)))


@pytest.mark.slow
@given(output=st.lists(documents(LINE) | documents(REPORT) | documents(ERROR), max_size=3).map(b"\n".join))
@example(output=lines(REPORT))
@example(output=lines({"id": 1, "pause": {"done": 1}}, LINE))
@example(output=lines({"id": 1, "error": None}))
@example(output=lines({"id": True, "result": {}}))
@example(output=lines(LINE)[:-9])
def test_any_output_is_an_answer_or_an_error_of_the_worker(speaker, output):
    with speaker(output) as worker, contextlib.suppress(WorkerError):
        assert isinstance(worker.ask("hello", progress=lambda report: report.phase), dict)


# a worker of another version of the protocol is a SteleError, but no WorkerError: the user has to update it
@pytest.mark.slow
@given(changed=changed_json([HELLO, CONFIGURATION, OUTCOME]))
@example(changed=[HELLO, CONFIGURATION, {**OUTCOME, "steps": {**OUTCOME["steps"], "seconds": []}}])
@example(changed=[HELLO, CONFIGURATION, {**OUTCOME, "steps": {**OUTCOME["steps"], "seconds": [0.1, -0.1]}}])
@example(changed=[HELLO, CONFIGURATION, {**OUTCOME, "learning": {"accuracy": "high"}}])
def test_any_answers_give_a_run_or_an_error_of_the_worker(speaker, changed):
    plan = Plan("gru", "train", "quick", data=None, data_origin=Origin(**RUN["data"]))
    output = results(*changed) if isinstance(changed, list) else results(changed)
    with speaker(output) as worker, contextlib.suppress(SteleError):
        run = measure.measure(worker, plan, CPU)
        assert min(run.steps.seconds) > 0 and run.counted_seconds


GOLDEN = golden_numbers.load("gru")
INFER = {**{name: GOLDEN[name] for name in ("task", "logits", "layers")}, "unequal": {}, "repeats": True}
TRAIN = {name: GOLDEN[name] for name in ("task", "loss", "gradients", "updates", "losses")}


@pytest.mark.slow
@given(changed=changed_json({"infer": INFER, "train": TRAIN}))
@example(changed={"infer": {**INFER, "layers": {}}, "train": TRAIN})
@example(changed={"infer": {**INFER, "unequal": {"w": {}}}, "train": TRAIN})
@example(changed={"infer": {**INFER, "unequal": {"w": None}}, "train": TRAIN})
def test_any_numbers_are_compared_with_the_golden_numbers_or_refused(speaker, changed):
    answers = [changed.get(phase) for phase in ("infer", "train")] if isinstance(changed, dict) else [changed]
    with speaker(results(*answers)) as worker, contextlib.suppress(WorkerError):
        numbers = examination.parity_answers(worker, "gru", None, ("infer", "train"))
        if numbers.get("task") == GOLDEN["task"]:
            found = ladder.compare(numbers, GOLDEN, task="gru", precision="fp32")
            assert found and all(ladder.message(finding) for finding in found)
        old, new = {**GOLDEN, "repeats": True}, numbers
        for first, second in ((old, new), (new, old)):
            rounding = reference.measure_rounding({"2 threads": first}, first, precision="fp32")
            reference.findings(second, first, rounding)


@given(changed=changed_json({"losses": [0.5, 0.4], "digest": "ab"}))
def test_any_repetition_is_compared_or_refused(speaker, changed):
    output = results({"losses": [0.5, 0.4], "digest": "ab"}, changed)
    with speaker(output) as worker, contextlib.suppress(WorkerError):
        launches = [examination.repeat_answer(worker, "gru", None) for _ in range(2)]
        assert ladder.repetition(launches, nondeterminism=None)


@given(changed=changed_json(INSPECTION))
def test_any_facts_of_a_model_are_read_or_refused(speaker, changed):
    with speaker(results(changed)) as worker, pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspection.worker, "launch", lambda *_, **__: contextlib.nullcontext(worker))
        with contextlib.suppress(WorkerError):
            found = inspection.inspect(worker.environment, Model("a:b", Path.cwd()), timeout=9)
            assert ",".join(map(str, found.inputs)) or not found.inputs


@given(changed=changed_json({"table": {"lr": 0.1}, "versions": {"torch": "2.4"}}))
def test_any_defaults_are_read_or_refused(speaker, changed):
    with speaker(results(changed)) as worker, pytest.MonkeyPatch.context() as patch:
        patch.setattr(defaults, "Worker", lambda *_, **__: contextlib.nullcontext(worker))
        with contextlib.suppress(WorkerError):
            assert isinstance(defaults.ask(worker.environment), dict)


@given(changed=changed_json([HELLO, CONFIGURATION, {"numbers": [1.0]}]))
@example(changed=[HELLO, CONFIGURATION, {"numbers": [None]}])
def test_any_answer_about_a_capability_gives_a_status(speaker, changed):
    output = results(*changed) if isinstance(changed, list) else results(changed)
    with speaker(output) as worker, pytest.MonkeyPatch.context() as patch:
        patch.setattr(capabilities.worker, "launch", lambda *_, **__: contextlib.nullcontext(worker))
        with contextlib.suppress(SteleError):
            assert capabilities.answer(worker.environment, "dynamic_batch", CPU).status


@pytest.mark.slow
@given(output=changed_bytes(results(HELLO, CONFIGURATION, OUTCOME)) | JSON.map(lines))
def test_mutated_bytes_give_a_run_or_an_error_of_the_worker(speaker, output):
    plan = Plan("gru", "train", "quick", data=None, data_origin=Origin(**RUN["data"]))
    with speaker(output) as worker, contextlib.suppress(SteleError):
        assert measure.measure(worker, plan, CPU).steps.seconds
