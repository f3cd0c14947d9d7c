"""Scores of Tasks: the area under the ROC curve, the generated samples of DenseNet-121, and their evaluation."""

from types import SimpleNamespace

import numpy
import pytest

from stele_suite import tasks
from stele_suite.tasks import scores
from stele_worker import measurement


@pytest.mark.parametrize(
    "outputs, targets, area",
    [
        ([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], 0.75),
        ([1, 2, 3, 4], [0, 0, 1, 1], 1.0),
        ([1, 2, 3, 4], [1, 1, 0, 0], 0.0),
        ([5, 5, 5, 5], [0, 1, 0, 1], 0.5),  # ties
        ([1, 2, 2, 3], [0, 0, 1, 1], 0.875),  # one tie in four pairs
    ],
)
def test_the_area_is_the_share_of_pairs_in_order_and_a_tie_counts_a_half(outputs, targets, area):
    assert scores.auc(numpy.array(outputs, numpy.float32), numpy.array(targets, numpy.float32)) == area


def test_the_area_equals_a_count_of_all_pairs():
    rng = numpy.random.RandomState(0)
    outputs, targets = rng.randint(0, 9, 50), rng.randint(0, 2, 50)
    pairs = [(high > low) + (high == low) / 2 for high in outputs[targets == 1] for low in outputs[targets == 0]]
    assert scores.auc(outputs, targets) == pytest.approx(numpy.mean(pairs), abs=1e-12)


def test_a_label_of_one_class_has_no_area_and_does_not_count():
    outputs = numpy.array([[1, 1, 1], [2, 2, 2], [3, 3, 0]])
    targets = numpy.array([[0, 1, 0], [0, 1, 0], [0, 1, 1]])
    assert scores.mean_auc(outputs, targets) == 0.0
    with pytest.raises(ValueError, match="no label has both classes among 3 samples"):
        scores.mean_auc(outputs[:, :2], targets[:, :2])


def generated(part, **sizes):
    task = tasks.make("densenet121", "smoke", image=32, **sizes)
    return tasks.load("densenet121").samples(task, part)


def test_the_findings_of_generated_images_can_be_learned():
    (images, labels), (others, expected) = generated("train", train=800), generated("test", test=800)
    seen, new = (x.mean(3).reshape(len(x), -1) - 0.5 for x in (images, others))
    probe = numpy.linalg.solve(seen.T @ seen + 100 * numpy.eye(seen.shape[1]), seen.T @ (labels - labels.mean(0)))
    assert 0.8 < scores.mean_auc(new @ probe, expected) < 1
    assert 0.45 < scores.mean_auc(new @ probe, numpy.roll(expected, 1, axis=0)) < 0.55


def test_generated_samples_depend_on_the_seed_and_the_part_alone():
    first, again, test = (
        generated("train", train=20),
        generated("train", train=20),
        generated("test", test=20),
    )
    other = generated("train", train=20, seed=1)
    assert all(numpy.array_equal(*pair) for pair in zip(first, again, strict=True))
    assert not any(numpy.array_equal(first[0], images) for images, _ in (test, other))
    assert [array.dtype for array in first] == [numpy.float32] * 2


def test_findings_are_as_frequent_as_stated():
    _, labels = generated("train", train=4000, test=1)
    assert labels.mean(0)[[0, -1]] == pytest.approx([0.02, 0.18], abs=0.02)


class Sorted:
    """A recipe and a framework whose network gives its inputs."""

    @staticmethod
    def inference_step(net, task):
        return lambda x: x

    put = fetch = staticmethod(lambda array: array)
    take = staticmethod(lambda array, rows: array[rows])


def evaluated(score):
    x = numpy.array([[0.1], [0.4], [0.35], [0.8]])
    subject = SimpleNamespace(
        task=SimpleNamespace(data=None),
        recipe=Sorted,
        score=score,
        samples=lambda part, data: (x, numpy.array([[0], [0], [1], [1]])),
        rows=lambda part: numpy.arange(4).reshape(2, 2),
    )
    return measurement.evaluate(Sorted, subject, None, None, None)


def test_a_score_is_that_of_all_batches_together():
    assert evaluated(scores.mean_auc) == {"accuracy": 0.75, "evaluated": 4}
    assert evaluated(None) == measurement.NOT_EVALUATED


def test_a_task_says_what_its_accuracy_is_called():
    assert [tasks.score_name(name) for name in ("densenet121", "cnn", "own")] == [
        "AUC",
        "accuracy",
        "accuracy",
    ]
    assert [tasks.has_meaning(name) for name in ("densenet121", "cnn", "resnet50")] == [True, True, False]
