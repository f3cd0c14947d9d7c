"""Check workers in any language against the protocol (docs/protocol.md).

    STELE_CONFORMANCE=r-keras pytest tests/worker/test_conformance.py

checks the workers of the environments in STELE_CONFORMANCE, separated by commas, and always the oracle's worker.
"""

import os

import numpy
import pytest

from stele import environments
from stele.environments import ORACLE
from stele.measuring.settings import Settings
from stele.measuring.worker import Worker
from stele.parity import golden_numbers, ladder
from stele_suite import tasks
from stele_worker import protocol
from tests.support.conversation import Conversation, check_error

SETTINGS = Settings(device="cpu", threads=1)
NAMES = [name for name in os.environ.get("STELE_CONFORMANCE", "").split(",") if name]
# the oracle's convolutions, in float64, take too long for a unit test, and so do long reviews
TASKS, LENGTH = (tasks.NAMES, 150) if NAMES else (("gru",), 15)
WARMUP = {"window": 1, "tolerance": 0.5, "most": 3}
ENDLESS = {"window": 5, "tolerance": 0.0, "most": 10**9}  # no two medians differ by less than 0
MEASURED = {
    "steps": {"seconds", "warmup", "steady", "batch"},
    "memory": {"host", "device"},
}
OPTIONAL = {"in_force", "preparation"}
TRAINING = {"learning": {"losses", "accuracy", "evaluated"}}
TIMES = {
    "epochs": {
        "accuracies", "evaluation_seconds", "compile_seconds", "data_seconds", "elapsed", "missed", "continued"
    }
}  # fmt: skip


@pytest.fixture(scope="module", params=[ORACLE.name, *NAMES])
def environment(request):
    """Return the oracle or an environment of STELE_CONFORMANCE, which must be ready."""
    if request.param == ORACLE.name:
        return ORACLE
    environment = environments.load(request.param)
    state = environments.state(environment)
    assert state.status == "ready", f"'{environment.name}' is {state.status}: {state.reason}"
    return environment


@pytest.fixture
def new_conversation(environment, start):
    """Return a new worker that has received no request."""
    return Conversation(start(environment))


@pytest.fixture(scope="module")
def conversation(environment, tmp_path_factory):
    """Return a worker with its framework, shared by all tests because no test may end it."""
    log = tmp_path_factory.mktemp("logs") / "worker.log"
    worker = Worker(environment, log=log, variables=SETTINGS.variables())
    conversation = Conversation(worker)
    conversation.answer = conversation.ask("configure", framework=environment.framework, settings=settings(environment))
    yield conversation
    worker.close(graceful=False)


def settings(environment):
    return {**SETTINGS.as_request(tuned=True), "mode": environment.mode}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return data(task) -> paths of noise in the format of its data set, enough for the smallest scale."""
    folder, random = tmp_path_factory.mktemp("data"), numpy.random.RandomState(0)

    def data(name):
        if tasks.make(name, "smoke").data is None:
            return None
        paths = {}
        for part in ("train", "test"):
            size = getattr(tasks.make(name, "smoke"), part)
            image = name == "cnn"
            x = random.randint(0, 256 if image else 30000, (size, 32, 32, 3) if image else (size, LENGTH))
            arrays = {
                part + "_x": x.astype(numpy.uint8 if image else numpy.int32),
                part + "_y": random.randint(0, 2, size).astype(numpy.int32),
            }
            for key, array in arrays.items():
                paths[key] = str(folder / f"{name}_{key}.npy")
                numpy.save(paths[key], array)
        return paths

    return data


def measurement(environment, name, data, warmup):
    """Return the fields of train and infer."""
    form = environment.forms.get(name)
    return {
        "task": name,
        "scale": "smoke",
        "seed": 0,
        "form": form,
        "data": data(name),
        "weights": None,
        "warmup": warmup,
    }


def skip_unsupported(environment, name, phase):
    """Skip the test if the environment does not support the cell, or for the oracle's convolutions."""
    reason = environment.why_absent(name, phase, device="cpu", precision="fp32")
    if environment is ORACLE and name != "gru":
        reason = "the oracle's convolutions take too long for a unit test"
    if reason:
        pytest.skip(reason)


def is_count(value):
    return type(value) is int and value >= 0


def is_number(value):
    return type(value) in (int, float)


def test_hello_returns_the_protocol_version_and_the_process_id(new_conversation):
    answer = new_conversation.ask("hello")
    assert answer["protocol"] == protocol.VERSION
    assert answer["pid"] == new_conversation.process.pid
    assert {"python", "numpy"} <= set(answer)


def test_the_worker_ends_silently_when_its_input_ends(new_conversation):
    new_conversation.ask("hello")
    assert new_conversation.close_input() == ([], 0)


def test_a_measurement_before_configure_is_an_error(new_conversation, environment, data):
    message = new_conversation.request_error("infer", **measurement(environment, "gru", data, WARMUP))["message"]
    assert "configure" in message
    assert new_conversation.ask("hello")["protocol"] == protocol.VERSION


def test_an_unknown_framework_is_an_error_that_names_it(new_conversation, environment):
    assert (
        "abacus"
        in new_conversation.request_error("configure", framework="abacus", settings=settings(environment))["message"]
    )
    assert new_conversation.ask("hello")["protocol"] == protocol.VERSION


def test_configure_returns_the_versions_and_the_active_settings(conversation):
    answer = conversation.answer
    assert set(answer) - {"start_seconds"} == {"import_seconds", "versions", "flags"}
    assert is_number(answer["import_seconds"]) and answer["import_seconds"] >= 0
    assert answer["versions"]
    assert all(version is None or isinstance(version, str) for version in answer["versions"].values())
    assert answer["flags"]["device"]
    assert answer["flags"]["processors"] is None or all(map(is_count, answer["flags"]["processors"]))


@pytest.mark.parametrize("line", ["Using TensorFlow backend.", "[1, 2]", '"hello"', "", "NaN", '{"id": 7,'])
def test_a_line_that_is_not_a_request_gets_an_error_without_a_number(conversation, line):
    conversation.send(line)
    number, kind, error = conversation.receive()
    assert (number, kind) == (None, "error")
    check_error(error)
    assert conversation.ask("hello")["protocol"] == protocol.VERSION


def test_an_unknown_verb_is_an_error_that_names_it_and_the_known_verbs(conversation):
    message = conversation.request_error("shout")["message"]
    assert "shout" in message
    assert all(verb in message for verb in ("hello", "configure", "train", "infer", "parity"))


def test_a_request_of_a_megabyte_is_read_completely(conversation):
    assert "shout" in conversation.request_error("shout", text="x" * 2**20)["message"]
    assert conversation.ask("hello")["protocol"] == protocol.VERSION


def test_a_request_without_its_fields_is_an_error(conversation):
    conversation.request_error("parity")
    assert conversation.ask("hello")["protocol"] == protocol.VERSION


def test_a_missing_file_is_an_error_that_names_it(conversation, environment):
    missing = dict.fromkeys(("train_x", "train_y", "test_x", "test_y"), "/nowhere/Größe.npy")
    fields = measurement(environment, "gru", lambda name: missing, WARMUP)
    assert "/nowhere/Größe.npy" in conversation.request_error("infer", **fields)["message"]
    assert conversation.ask("hello")["protocol"] == protocol.VERSION


@pytest.mark.parametrize("number", [0, 100000, 2**40])
def test_an_answer_carries_the_number_of_its_request(conversation, number):
    conversation.send(f'{{"id": {number}, "verb": "hello"}}')
    assert conversation.receive()[:2] == (number, "result")


@pytest.mark.parametrize("name", TASKS)
def test_inference_returns_its_durations_and_no_losses(conversation, environment, data, name):
    skip_unsupported(environment, name, "infer")
    task = tasks.make(name, "smoke")
    outcome = conversation.ask("infer", **measurement(environment, name, data, WARMUP))
    assert keys_of(outcome) == MEASURED
    assert_measured(outcome, task)
    steps = outcome["steps"]
    assert len(steps["seconds"]) == steps["warmup"] + task.test // task.batch
    assert steps["warmup"] <= WARMUP["most"]


@pytest.mark.parametrize("phase", ["train", "infer"] if NAMES else ["infer"])
def test_a_worker_with_turns_pauses_before_each_turn(conversation, environment, data, phase):
    skip_unsupported(environment, "gru", phase)
    number, pauses = conversation.request(phase, **measurement(environment, "gru", data, WARMUP), turn=2), []
    while (message := conversation.receive())[1] != "result":
        if message[1] == "pause":
            pauses.append(message)
            conversation.resume(number)
    steps = len(message[2]["steps"]["seconds"])
    assert pauses == [(number, "pause", {"done": done}) for done in range(0, steps, 2)]


def test_a_request_during_a_pause_is_an_error(conversation, environment, data):
    skip_unsupported(environment, "gru", "infer")
    number = conversation.request("infer", **measurement(environment, "gru", data, WARMUP), turn=1)
    assert conversation.receive() == (number, "pause", {"done": 0})
    conversation.send('{"id": 9, "verb": "hello"}')
    _, kind, error = conversation.receive()
    assert kind == "error"
    assert "hello" in check_error(error)["message"]
    assert conversation.ask("hello")["protocol"] == protocol.VERSION


@pytest.mark.parametrize("name", TASKS)
def test_training_returns_a_loss_for_every_step(conversation, environment, data, name):
    skip_unsupported(environment, name, "train")
    task = tasks.make(name, "smoke")
    outcome = conversation.ask("train", **measurement(environment, name, data, WARMUP))
    assert keys_of(outcome) == MEASURED | TRAINING
    assert_measured(outcome, task)
    learning = outcome["learning"]
    losses, accuracy, evaluated = learning["losses"], learning["accuracy"], learning["evaluated"]
    assert len(outcome["steps"]["seconds"]) == len(losses) == task.epochs * (task.train // task.batch)
    assert all(loss is None or is_number(loss) for loss in losses)
    assert is_count(evaluated)
    if not tasks.has_meaning(name):
        assert (accuracy, evaluated) == (None, 0)
    else:
        assert is_number(accuracy) and 0 <= accuracy <= 1
        assert evaluated == task.test // task.batch * task.batch


def keys_of(outcome):
    """Return the keys of each part of an outcome."""
    return {part: set(values) for part, values in outcome.items() if part not in OPTIONAL}


def assert_measured(outcome, task):
    steps = outcome["steps"]
    assert all(is_number(duration) and duration > 0 for duration in steps["seconds"])
    assert is_count(steps["warmup"]) and steps["warmup"] >= 1
    assert type(steps["steady"]) is bool
    assert is_count(steps["batch"]) and steps["batch"] == task.batch
    for memory in outcome["memory"].values():
        assert memory is None or (is_count(memory) and memory > 2**20)


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_time_to_accuracy_returns_the_times_and_the_accuracy_of_every_epoch(conversation, environment, data, name):
    skip_unsupported(environment, name, "time-to-accuracy")
    task = tasks.make(name, "smoke")
    if task.data is None:
        pytest.skip("the task has no data set")
    fields = measurement(environment, name, data, WARMUP)
    outcome = conversation.ask("time-to-accuracy", epochs=2, **fields)
    seconds, learning, epochs = outcome["steps"]["seconds"], outcome["learning"], outcome["epochs"]
    each = (seconds, learning["losses"], epochs["accuracies"], epochs["evaluation_seconds"])
    assert keys_of(outcome) == MEASURED | TRAINING | TIMES
    assert [len(values) for values in each] == [2] * len(each)
    assert learning["accuracy"] == epochs["accuracies"][-1]
    assert all(is_number(value) and value > 0 for value in (*seconds, *epochs["evaluation_seconds"]))
    parts = sum((*seconds, *epochs["evaluation_seconds"], epochs["compile_seconds"]))
    assert parts + epochs["data_seconds"] <= epochs["elapsed"]
    assert epochs["continued"] is False and epochs["missed"] == []


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["train", "infer"])
@pytest.mark.parametrize("name", TASKS)
def test_parity_returns_the_golden_numbers(conversation, environment, name, phase):
    skip_unsupported(environment, name, phase)
    form = environment.forms.get(name)
    golden = golden_numbers.load(name, form)
    numbers = conversation.ask("parity", task=name, phase=phase, seed=golden_numbers.seed(name), form=form)
    keys = {
        "train": {"task", "unequal", "loss", "gradients", "updates", "losses"},
        "infer": {"task", "unequal", "layers", "logits", "repeats", "tracked"},
    }
    assert set(numbers) == keys[phase]
    assert set(numbers.get("gradients", golden["gradients"])) == set(golden["gradients"])
    assert ladder.first_difference(ladder.compare(numbers, golden, task=name, precision="fp32")) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_repeat_returns_losses_and_a_digest(conversation, environment, name):
    skip_unsupported(environment, name, "train")
    fields = {
        "task": name,
        "phase": "repeat",
        "seed": golden_numbers.seed(name),
        "form": environment.forms.get(name),
    }
    first, second = conversation.ask("parity", **fields), conversation.ask("parity", **fields)
    assert set(first) == {"task", "losses", "digest"}
    assert len(first["losses"]) == len(second["losses"]) == 5
    assert len(first["digest"]) == 64


def test_progress_is_sent_at_most_once_per_second_and_an_interrupt_is_answered(conversation, environment, data):
    skip_unsupported(environment, "gru", "infer")
    number = conversation.request("infer", **measurement(environment, "gru", data, ENDLESS))
    answers = conversation.reports(number)
    (first, report), (second, _) = next(answers), next(answers)
    assert set(report) == {"phase", "done", "of"}
    assert report["phase"] == "infer"
    assert is_count(report["done"]) and report["of"] == 5
    assert second - first > 0.5  # the pipe may delay one message, but not all
    conversation.interrupt()
    *_, (kind, error) = answers
    assert kind == "error"
    check_error(error)
    assert conversation.ask("hello")["protocol"] == protocol.VERSION
