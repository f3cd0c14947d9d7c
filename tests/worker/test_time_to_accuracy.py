"""The phase time-to-accuracy in the worker: what is timed, and how a training that was killed continues."""

from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from stele_worker import checkpoints, clock, measurement, time_to_accuracy
from tests.support.numpy_framework import framework

# seconds of the parts of a training
DATA, TEST_DATA, GATHER, STEP, EVALUATION, COMPILATION = 1.0, 0.5, 0.125, 2.0, 0.25, 64.0
EPOCHS, STEPS, TEST_BATCHES, BATCH = 3, 4, 2, 5
WHOLE_EPOCH = STEPS * (GATHER + STEP)


class Training:
    """A framework, a recipe and a subject whose parts take known times; a network that learns one answer a step."""

    def __init__(self, monkeypatch):
        self.release, self.now, self.weight, self.compiled, self.pauses, self.reports = (
            "1.0",
            0.0,
            0,
            set(),
            [],
            [],
        )
        for module in (clock, measurement, time_to_accuracy, checkpoints):
            monkeypatch.setattr(module, "perf_counter", lambda: self.now)
        self.host = SimpleNamespace(report=lambda **fields: self.reports.append(fields), pause=self.pause)
        task = SimpleNamespace(name="fake", data="cifar10", batch=BATCH, epochs=EPOCHS)
        self.recipe = SimpleNamespace(
            network=lambda task: self,
            load=lambda net, weights: net,
            training_step=lambda net, task: self.make_step(),
            inference_step=lambda net, task: self.evaluate,
            LAYOUT="NHWC",
        )
        self.framework = framework(take=self.take, fetch=lambda value: value, versions=lambda: {"fake": self.release})
        self.subject = SimpleNamespace(
            task=task,
            recipe=self.recipe,
            weights=lambda path, samples: {},
            on_host=lambda: False,
            table=lambda framework: None,
            initial=lambda framework, weights: weights,
            samples=self.samples,
            epochs=lambda: [numpy.zeros((STEPS, BATCH), int)] * EPOCHS,
            rows=lambda part: numpy.zeros((TEST_BATCHES, BATCH), int),
            correct=lambda output, target: min(output, BATCH),
        )

    def spend(self, seconds):
        self.now += seconds

    def compile(self, name):
        if name not in self.compiled:
            self.compiled.add(name)
            self.spend(COMPILATION)

    def samples(self, part, data):
        self.spend(DATA if part == "train" else TEST_DATA)
        return numpy.zeros(9), numpy.zeros(9)

    def take(self, array, rows):
        self.spend(GATHER / 2)
        return array

    def make_step(self):
        def step(x, y):
            self.compile("training")
            self.spend(STEP)
            self.weight += 1
            return 1.0 / self.weight

        step.state = lambda: {"weight": numpy.array(self.weight)}
        step.restore = lambda state: setattr(self, "weight", int(state["weight"]))
        return step

    def evaluate(self, x):
        self.compile("evaluation")
        self.spend(EVALUATION)
        return self.weight // 3

    def pause(self, done):
        self.pauses.append(done)
        self.spend(1000)

    def train(self, **fields):
        return time_to_accuracy.train(self.framework, self.subject, self.host, None, None, **fields)


@pytest.fixture
def training(monkeypatch):
    monkeypatch.setattr(measurement.process, "peak_memory", lambda: None)
    return Training(monkeypatch)


def test_the_epochs_are_timed_with_their_batches_and_without_evaluation_and_compilation(training):
    outcome = training.train()
    assert outcome["steps"]["seconds"] == [WHOLE_EPOCH] * EPOCHS
    one_evaluation = TEST_BATCHES * (GATHER / 2 + EVALUATION)
    assert outcome["epochs"]["evaluation_seconds"] == [one_evaluation] * EPOCHS
    assert outcome["epochs"]["compile_seconds"] == 2 * COMPILATION
    assert outcome["epochs"]["data_seconds"] == DATA


def test_augmentation_is_a_part_of_each_epoch_and_its_compilation_is_not(training):
    numbers = []

    def take_pixels(images, table, layout):
        numbers.append(table)
        training.compile("augmentation")
        training.spend(16.0)
        return images

    training.subject.table = lambda framework: lambda epoch: epoch
    training.framework.take_pixels = take_pixels
    outcome = training.train()
    assert outcome["steps"]["seconds"] == [WHOLE_EPOCH + 16] * EPOCHS
    assert outcome["epochs"]["compile_seconds"] == 3 * COMPILATION + 16
    assert numbers == [0, 0, 1, 2]
    parts = sum(
        (*outcome["steps"]["seconds"], *outcome["epochs"]["evaluation_seconds"], outcome["epochs"]["compile_seconds"])
    )
    assert outcome["epochs"]["elapsed"] == DATA + TEST_DATA + parts


def parts_of(outcome):
    """Return the durations of all epochs, evaluations and compilations."""
    epochs = outcome["epochs"]
    return (*outcome["steps"]["seconds"], *epochs["evaluation_seconds"], epochs["compile_seconds"])


def test_the_time_from_the_first_access_to_the_data_contains_everything(training):
    outcome = training.train()
    parts = (
        *outcome["steps"]["seconds"],
        *outcome["epochs"]["evaluation_seconds"],
        outcome["epochs"]["compile_seconds"],
    )
    assert outcome["epochs"]["elapsed"] == DATA + TEST_DATA + sum(parts)
    assert not outcome["epochs"]["continued"]


def test_each_epoch_has_its_mean_loss_and_its_accuracy_and_the_last_accuracy_counts(training):
    outcome = training.train()
    assert outcome["learning"]["losses"][0] == pytest.approx(numpy.mean([1, 1 / 2, 1 / 3, 1 / 4]))
    assert outcome["epochs"]["accuracies"] == [1 / 5, 2 / 5, 4 / 5]
    assert outcome["learning"]["accuracy"] == 4 / 5
    assert outcome["learning"]["evaluated"] == TEST_BATCHES * BATCH


def test_progress_has_the_loss_the_accuracy_and_the_remaining_time(training):
    outcome = training.train()
    reports = [report for report in training.reports if "loss" in report]
    assert [report["done"] for report in reports] == [1, 2, 3]
    assert [report["accuracy"] for report in reports] == outcome["epochs"]["accuracies"]
    assert [report["loss"] for report in reports] == outcome["learning"]["losses"]
    one = outcome["steps"]["seconds"][0] + outcome["epochs"]["evaluation_seconds"][0]
    assert [report["remaining"] for report in reports] == [2 * one, one, 0]


def test_a_long_epoch_tells_the_host_how_many_steps_are_done(training, monkeypatch):
    monkeypatch.setattr(time_to_accuracy, "HEARTBEAT", 4.0)
    training.train()
    alive = [report for report in training.reports if "loss" not in report]
    assert {report["phase"] for report in alive} == {"epoch 1", "epoch 2", "epoch 3"}
    assert all(0 < report["done"] < report["of"] for report in alive)


def test_pauses_are_in_no_time(training):
    outcome = training.train(turn=1)
    assert training.pauses == [0, 1, 2]
    assert outcome["steps"]["seconds"] == [WHOLE_EPOCH] * EPOCHS
    assert outcome["epochs"]["elapsed"] < 1000


def test_random_labels_have_no_accuracy(training):
    training.subject.task.data = None
    with pytest.raises(ValueError, match="task 'fake' generates its samples"):
        training.train()


@pytest.fixture
def killed(training, monkeypatch, tmp_path):
    """A training that was killed after its second epoch, and saved its state after each."""
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    path = str(tmp_path / "state.npz")

    def kill(**fields):
        training.reports.append(fields)
        if fields["done"] == 2 and "loss" in fields:
            raise KeyboardInterrupt

    training.host.report = kill
    with pytest.raises(KeyboardInterrupt):
        training.train(checkpoint=path)
    training.host.report = lambda **fields: None
    return path


def test_a_killed_training_continues_for_its_accuracy_but_not_for_its_time(training, killed):
    training.weight = 0  # of a new process
    outcome = training.train(checkpoint=killed)
    assert outcome["epochs"]["continued"]
    assert outcome["epochs"]["accuracies"] == [1 / 5, 2 / 5, 4 / 5]
    assert len(outcome["steps"]["seconds"]) == EPOCHS


@pytest.mark.parametrize("damage", [b"", b"PK no zip", None])
def test_a_damaged_state_or_that_of_another_release_is_not_used(training, killed, damage):
    training.weight = 0
    if damage is None:
        training.release = "2.0"
    else:
        Path(killed).write_bytes(damage)
    outcome = training.train(checkpoint=killed)
    assert not outcome["epochs"]["continued"] and outcome["epochs"]["accuracies"] == [1 / 5, 2 / 5, 4 / 5]


def test_a_step_without_a_state_is_trained_from_the_start(training, killed):
    training.recipe.training_step = lambda net, task: lambda x, y: training.make_step()(x, y)
    training.weight = 0
    assert not training.train(checkpoint=killed)["epochs"]["continued"]


def test_a_short_training_writes_no_state(training, tmp_path):
    training.train(checkpoint=str(tmp_path / "state.npz"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_launch_repeats_trainings_that_miss_the_target(training):
    weights = iter([0, 0, 9])  # the third starts far ahead

    def make_subject(attempt):
        training.weight = next(weights)
        return training.subject

    fields = {"data": None, "weights": None}
    outcome = time_to_accuracy.until_target(make_subject, 0.9, 5, training.framework, training.host, **fields)
    assert outcome["epochs"]["missed"] == [DATA + EPOCHS * WHOLE_EPOCH] * 2
    assert outcome["learning"]["accuracy"] == 1
    steps = [(report["phase"], report["done"]) for report in training.reports]
    assert len(set(steps)) == len(steps)  # each report is of a new step
    phases = {"time-to-accuracy", *(f"time-to-accuracy, attempt {number}" for number in (2, 3))}
    assert phases <= {phase for phase, _ in steps}


def test_a_launch_whose_trainings_all_miss_the_target_ends_after_the_last_attempt(training):
    def make_subject(attempt):
        training.weight = 0
        return training.subject

    fields = {"data": None, "weights": None}
    outcome = time_to_accuracy.until_target(make_subject, 0.9, 2, training.framework, training.host, **fields)
    assert len(outcome["epochs"]["missed"]) == 1
    assert outcome["learning"]["accuracy"] == 4 / 5
