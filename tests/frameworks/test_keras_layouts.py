"""Recipes of Keras on PyTorch with channels first, as on a GPU in fp32, beside channels last.

Needs KERAS_BACKEND=torch.
"""

import keras
import numpy
import pytest
import torch

from stele_suite import tasks
from stele_worker import agreement, recipes
from stele_worker.subjects import TaskSubject
from tests.frameworks import contract

NETWORKS = ["cnn", "resnet50", "mobilenetv2", "densenet121", "cifar-fast"]
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def framework():
    return contract.configure("keras")


def computed(framework, name):
    """Return what parity compares in both phases, and the layout of the layers."""
    subject = TaskSubject(tasks.make(name, "parity"), recipes.load(name, "keras"))
    numbers = [agreement.check(framework, subject, phase) for phase in ("infer", "train")]
    return numbers, keras.config.image_data_format()


def flat(numbers):
    """Return the numbers of a value of parity as one array; rounding decides gradients that are nearly zero."""
    values = list(numbers.values()) if isinstance(numbers, dict) else [numbers]
    return numpy.concatenate([numpy.ravel(value) for value in values])


@pytest.mark.parametrize("name", NETWORKS)
def test_channels_first_compute_the_same(framework, monkeypatch, name):
    last, layout = computed(framework, name)
    assert layout == "channels_last"
    monkeypatch.setattr(framework.native, "channels_first", lambda dtype: True)
    first, layout = computed(framework, name)
    assert layout == framework.flags()["image_data_format_of_recipes"] == "channels_first"
    for phase, keys in enumerate((("logits", "layers"), ("losses", "gradients"))):
        for key in keys:
            one, other = flat(first[phase][key]), flat(last[phase][key])
            assert numpy.abs(one - other).max() <= 0.01 * numpy.abs(other).max(), key


def test_the_layers_receive_contiguous_images(framework, monkeypatch):
    monkeypatch.setattr(framework.native, "channels_first", lambda dtype: True)
    task = tasks.make("cnn", "parity")
    recipe, seen = recipes.load("cnn", "keras"), []
    net = recipe.network(task)
    layer = net.get_layer("conv1_relu")
    call = layer.call
    monkeypatch.setattr(layer, "call", lambda x: seen.append(x) or call(x))
    net(torch.zeros(2, 32, 32, 3))
    assert tuple(seen[-1].shape) == (2, 3, 32, 32) and seen[-1].is_contiguous()


def test_a_model_of_a_user_has_the_default_layout(framework):
    contract.configure("keras")
    assert keras.config.image_data_format() == "channels_last"
