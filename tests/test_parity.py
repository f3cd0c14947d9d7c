"""The golden numbers hold against the oracle, and each planted fault is caught."""

import numpy
import pytest

from stele import parity
from stele.errors import SteleError
from stele_worker import agreement, frameworks, recipes, tasks

NUMPY = frameworks.load("numpy")


STEPS = 3  # of the golden ten: enough to see each planted fault, and quick


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(agreement, "STEPS", dict.fromkeys(agreement.STEPS, STEPS))


def found(task, phase):
    numbers = agreement.check(NUMPY, tasks.make(task, "paper", seed=parity.SEEDS[task]), phase)
    golden = parity.golden(task)
    expected = {**golden, "losses": golden["losses"][:STEPS]}
    return parity.disagreements(task, numbers, expected, precision="fp32")


@pytest.mark.parametrize("task", ["cnn", "gru"])
@pytest.mark.parametrize("phase", ["infer", "train"])
def test_the_oracle_agrees_with_the_golden_numbers(task, phase):
    assert found(task, phase) == []


def test_the_oracle_agrees_with_the_golden_features():
    assert found("resnet50", "infer") == []


def test_a_planted_wrong_weight_is_caught(monkeypatch):
    recipe = recipes.load("cnn", "numpy")
    load = recipe.load

    def spoilt(net, weights):
        net = load(net, weights)
        net["conv3.weight"][7, 5, 1, 1] += 0.5
        return net

    monkeypatch.setattr(recipe, "load", spoilt)
    assert any(sentence.startswith("logits differ") for sentence in found("cnn", "infer"))


def test_a_planted_forgotten_eval_mode_is_caught(monkeypatch):
    recipe = recipes.load("cnn", "numpy")

    def forgetful(net, task):
        return lambda x: recipe.forward(net, task, x, numpy.random.RandomState(0))[0]

    monkeypatch.setattr(recipe, "inference_step", forgetful)
    assert any(sentence.startswith("logits differ") for sentence in found("cnn", "infer"))


def test_a_changed_task_makes_the_golden_numbers_stale():
    numbers = agreement.check(NUMPY, tasks.make("gru", "paper", epsilon=1e-7), "infer")
    [sentence] = parity.disagreements("gru", numbers, parity.golden("gru"), precision="fp32")
    assert "stale" in sentence
    assert "stele parity --rebase" in sentence


def test_scale_and_precision_do_not_make_the_golden_numbers_stale():
    weights = tasks.load("gru").weights(0)
    x, y = tasks.load("gru").example(2, 0)
    prints = {
        agreement.fingerprint(tasks.make("gru", scale, dtype=dtype), weights, x, y)
        for scale in tasks.SCALES
        for dtype in ("float32", "bfloat16")
    }
    assert len(prints) == 1


@pytest.mark.parametrize("spoilt", [None, [[None]], [[float("nan")]], [[1.0, 2.0]]])
def test_missing_numbers_and_nan_are_no_agreement(spoilt):
    expected = {"task": "t", "logits": [[1.0]]}
    assert parity.disagreements("cnn", {"task": "t", "logits": spoilt}, expected, precision="fp32")


def test_a_missing_gradient_is_no_agreement():
    expected = {"task": "t", "gradient_norms": {"conv1.bias": 1.0}}
    [sentence] = parity.disagreements("cnn", {"task": "t", "gradient_norms": {}}, expected, precision="fp32")
    assert sentence.startswith("gradient_norms of conv1.bias differ")


def test_golden_numbers_that_were_never_made_are_an_error_that_says_how(tmp_path):
    with pytest.raises(SteleError, match="stele parity --rebase"):
        parity.golden("cnn", folder=tmp_path)


def test_golden_numbers_survive_as_a_file(tmp_path):
    numbers = {"task": "t", "logits": [[0.1, 1 / 3]], "loss": 2.302585092994}
    parity.save("cnn", None, numbers, tmp_path)
    assert parity.golden("cnn", folder=tmp_path) == {
        "task": "t",
        "logits": [[0.1, 0.333333333]],
        "loss": 2.30258509,
    }
