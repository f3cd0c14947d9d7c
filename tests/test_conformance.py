"""The protocol as a contract (docs/protocol.md): whatever language a worker is written in, it keeps this.

    STELE_CONFORMANCE=r-keras pytest tests/test_conformance.py

holds the workers of the environments that STELE_CONFORMANCE names against it, and always the oracle's.
"""

import os

import numpy
import pytest

from conversation import Conversation, whole
from stele import environments
from stele.environments import ORACLE
from stele.measuring.settings import Settings
from stele.measuring.worker import Worker
from stele.parity import golden_numbers, ladder
from stele_worker import protocol, tasks

SETTINGS = Settings(device="cpu", threads=1)
NAMED = [name for name in os.environ.get("STELE_CONFORMANCE", "").split(",") if name]
# the oracle's convolutions, in float64, take too long for a unit test, and so do its long messages
TASKS, STATUSES = (tasks.NAMES, 150) if NAMED else (("gru",), 15)
WARMUP = {"window": 1, "tolerance": 0.5, "most": 3}
ENDLESS = {"window": 5, "tolerance": 0.0, "most": 10**9}  # no two medians differ by less than nothing
MEASURED = {"host_memory", "device_memory", "seconds", "warmup", "steady", "batch"}
LEARNT = {"losses", "accuracy", "evaluated"}


@pytest.fixture(scope="module", params=[ORACLE.name, *NAMED])
def row(request):
    """The oracle and every environment that is named; one that is not there is a failure."""
    if request.param == ORACLE.name:
        return ORACLE
    found = environments.load(request.param)
    state = environments.state(found)
    assert state.status == "ready", f"'{found.name}' is {state.status}: {state.reason}"
    return found


@pytest.fixture
def fresh(row, start):
    """A worker that was asked nothing yet."""
    return Conversation(start(row))


@pytest.fixture(scope="module")
def configured(row, tmp_path_factory):
    """A worker with its framework: one for all tests, for none of them may cost it its life."""
    log = tmp_path_factory.mktemp("logs") / "worker.log"
    worker = Worker(row, log=log, variables=SETTINGS.variables())
    conversation = Conversation(worker)
    conversation.answer = conversation.ask("configure", framework=row.framework, settings=asked(row))
    yield conversation
    worker.close(patiently=False)


def asked(row):
    return {**SETTINGS.as_request(), "tuned": row.tuned}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """data(task) -> paths of noise in the form of its data set, as much as the smallest scale uses."""
    folder, random = tmp_path_factory.mktemp("data"), numpy.random.RandomState(0)

    def data(name):
        if tasks.make(name, "smoke").data is None:
            return None
        paths = {}
        for part in ("train", "test"):
            size = getattr(tasks.make(name, "smoke"), part)
            image = name == "cnn"
            x = random.randint(0, 256 if image else 30000, (size, 32, 32, 3) if image else (size, STATUSES))
            arrays = {
                part + "_x": x.astype(numpy.uint8 if image else numpy.int32),
                part + "_y": random.randint(0, 2, size).astype(numpy.int32),
            }
            for key, array in arrays.items():
                paths[key] = str(folder / f"{name}_{key}.npy")
                numpy.save(paths[key], array)
        return paths

    return data


def measurement(row, name, data, warmup):
    """The fields of train and infer."""
    form = row.forms.get(name)
    return {
        "task": name,
        "scale": "smoke",
        "seed": 0,
        "form": form,
        "data": data(name),
        "weights": None,
        "warmup": warmup,
    }


def computes(row, name, phase):
    """Skip what the row says it cannot do, and the oracle's convolutions."""
    reason = row.why_absent(name, phase, device="cpu", precision="fp32")
    if row is ORACLE and name != "gru":
        reason = "the oracle's convolutions take too long for a unit test"
    if reason:
        pytest.skip(reason)


def is_count(value):
    return type(value) is int and value >= 0


def is_number(value):
    return type(value) in (int, float)


def test_a_worker_says_which_protocol_it_speaks_and_which_process_it_is(fresh):
    answer = fresh.ask("hello")
    assert answer["protocol"] == protocol.VERSION
    assert answer["pid"] == fresh.process.pid
    assert {"python", "numpy"} <= set(answer)


def test_the_end_of_its_input_ends_it_without_a_word(fresh):
    fresh.ask("hello")
    assert fresh.farewell() == ([], 0)


def test_nothing_can_be_measured_before_a_framework_is_there(fresh, row, data):
    message = fresh.refused("infer", **measurement(row, "gru", data, WARMUP))["message"]
    assert "configure" in message
    assert fresh.ask("hello")["protocol"] == protocol.VERSION


def test_an_unknown_framework_is_an_error_that_names_it(fresh, row):
    assert "abacus" in fresh.refused("configure", framework="abacus", settings=asked(row))["message"]
    assert fresh.ask("hello")["protocol"] == protocol.VERSION


def test_a_framework_tells_its_versions_and_the_settings_in_force(configured):
    answer = configured.answer
    assert set(answer) == {"import_seconds", "versions", "flags"}
    assert is_number(answer["import_seconds"]) and answer["import_seconds"] >= 0
    assert answer["versions"]
    assert all(version is None or isinstance(version, str) for version in answer["versions"].values())
    assert answer["flags"]["device"]
    assert answer["flags"]["processors"] is None or all(map(is_count, answer["flags"]["processors"]))


@pytest.mark.parametrize("line", ["Using TensorFlow backend.", "[1, 2]", '"hello"', "", "NaN", '{"id": 7,'])
def test_what_is_no_request_gets_an_error_without_a_number(configured, line):
    configured.say(line)
    number, kind, error = configured.hear()
    assert (number, kind) == (None, "error")
    whole(error)
    assert configured.ask("hello")["protocol"] == protocol.VERSION


def test_an_unknown_verb_is_an_error_that_names_it_and_the_known_ones(configured):
    message = configured.refused("shout")["message"]
    assert "shout" in message
    assert all(verb in message for verb in ("hello", "configure", "train", "infer", "parity"))


def test_a_request_of_a_megabyte_is_read_whole(configured):
    assert "shout" in configured.refused("shout", text="x" * 2**20)["message"]
    assert configured.ask("hello")["protocol"] == protocol.VERSION


def test_a_request_without_its_fields_is_an_error(configured):
    configured.refused("parity")
    assert configured.ask("hello")["protocol"] == protocol.VERSION


def test_a_file_that_is_not_there_is_an_error_that_names_it(configured, row):
    nowhere = dict.fromkeys(("train_x", "train_y", "test_x", "test_y"), "/nowhere/Größe.npy")
    fields = measurement(row, "gru", lambda name: nowhere, WARMUP)
    assert "/nowhere/Größe.npy" in configured.refused("infer", **fields)["message"]
    assert configured.ask("hello")["protocol"] == protocol.VERSION


@pytest.mark.parametrize("number", [0, 100000, 2**40])
def test_an_answer_carries_the_number_of_its_request(configured, number):
    configured.say(f'{{"id": {number}, "verb": "hello"}}')
    assert configured.hear()[:2] == (number, "result")


@pytest.mark.parametrize("name", TASKS)
def test_inference_answers_with_its_durations_and_nothing_else(configured, row, data, name):
    computes(row, name, "infer")
    task = tasks.make(name, "smoke")
    outcome = configured.ask("infer", **measurement(row, name, data, WARMUP))
    assert set(outcome) == MEASURED
    assert_measured(outcome, task)
    assert len(outcome["seconds"]) == outcome["warmup"] + task.test // task.batch
    assert outcome["warmup"] <= WARMUP["most"]


@pytest.mark.parametrize("phase", ["train", "infer"] if NAMED else ["infer"])
def test_a_worker_in_turns_waits_before_each_of_its_own(configured, row, data, phase):
    computes(row, "gru", phase)
    number, pauses = configured.request(phase, **measurement(row, "gru", data, WARMUP), turn=2), []
    while (heard := configured.hear())[1] != "result":
        if heard[1] == "pause":
            pauses.append(heard)
            configured.go(number)
    steps = len(heard[2]["seconds"])
    assert pauses == [(number, "pause", {"done": done}) for done in range(0, steps, 2)]


def test_in_a_pause_nothing_else_can_be_asked(configured, row, data):
    computes(row, "gru", "infer")
    number = configured.request("infer", **measurement(row, "gru", data, WARMUP), turn=1)
    assert configured.hear() == (number, "pause", {"done": 0})
    configured.say('{"id": 9, "verb": "hello"}')
    _, kind, error = configured.hear()
    assert kind == "error"
    assert "hello" in whole(error)["message"]
    assert configured.ask("hello")["protocol"] == protocol.VERSION


@pytest.mark.parametrize("name", TASKS)
def test_training_answers_with_a_loss_for_every_step(configured, row, data, name):
    computes(row, name, "train")
    task = tasks.make(name, "smoke")
    outcome = configured.ask("train", **measurement(row, name, data, WARMUP))
    assert set(outcome) == MEASURED | LEARNT
    assert_measured(outcome, task)
    assert len(outcome["seconds"]) == len(outcome["losses"]) == task.epochs * (task.train // task.batch)
    assert all(loss is None or is_number(loss) for loss in outcome["losses"])
    assert is_count(outcome["evaluated"])
    if task.data is None:
        assert (outcome["accuracy"], outcome["evaluated"]) == (None, 0)
    else:
        assert is_number(outcome["accuracy"]) and 0 <= outcome["accuracy"] <= 1
        assert outcome["evaluated"] == task.test // task.batch * task.batch


def assert_measured(outcome, task):
    assert all(is_number(duration) and duration > 0 for duration in outcome["seconds"])
    assert is_count(outcome["warmup"]) and outcome["warmup"] >= 1
    assert type(outcome["steady"]) is bool
    assert is_count(outcome["batch"]) and outcome["batch"] == task.batch
    for memory in (outcome["host_memory"], outcome["device_memory"]):
        assert memory is None or (is_count(memory) and memory > 2**20)


@pytest.mark.parametrize("phase", ["train", "infer"])
@pytest.mark.parametrize("name", TASKS)
def test_parity_answers_with_the_golden_numbers(configured, row, name, phase):
    computes(row, name, phase)
    form = row.forms.get(name)
    golden = golden_numbers.load(name, form)
    numbers = configured.ask("parity", task=name, phase=phase, seed=golden_numbers.SEEDS[name], form=form)
    kinds = {
        "train": {"task", "unequal", "loss", "gradients", "updates", "losses"},
        "infer": {"task", "unequal", "layers", "logits", "repeats", "tracked"},
    }
    assert set(numbers) == kinds[phase]
    assert set(numbers.get("gradients", golden["gradients"])) == set(golden["gradients"])
    assert ladder.first_difference(ladder.compare(numbers, golden, task=name, precision="fp32")) is None


@pytest.mark.parametrize("name", TASKS)
def test_a_repetition_answers_with_losses_and_a_digest(configured, row, name):
    computes(row, name, "train")
    asked = {"task": name, "phase": "repeat", "seed": golden_numbers.SEEDS[name], "form": row.forms.get(name)}
    first, second = configured.ask("parity", **asked), configured.ask("parity", **asked)
    assert set(first) == {"task", "losses", "digest"}
    assert len(first["losses"]) == len(second["losses"]) == 5
    assert len(first["digest"]) == 64


def test_progress_is_told_at_most_once_a_second_and_an_interrupt_is_an_answer(configured, row, data):
    computes(row, "gru", "infer")
    number = configured.request("infer", **measurement(row, "gru", data, ENDLESS))
    answers = configured.reports(number)
    (first, report), (second, _) = next(answers), next(answers)
    assert set(report) == {"phase", "done", "of"}
    assert report["phase"] == "infer"
    assert is_count(report["done"]) and report["of"] == 5
    assert second - first > 0.5  # the pipe may hold one up, but not every one
    configured.interrupt()
    *_, (kind, error) = answers
    assert kind == "error"
    whole(error)
    assert configured.ask("hello")["protocol"] == protocol.VERSION
