"""Steps of Keras on PyTorch, as ``recipe`` describes them."""

import torch

from stele_worker import frameworks
from stele_worker.frameworks.keras.network import one_or_all, training_loss
from stele_worker.frameworks.torch.recipe import add_communication, on_all_devices

framework = frameworks.load("keras")


def backward(net, loss):
    """Return run(*inputs, y) -> (loss, gradients), which is not compiled."""
    compute, variables = on_all_devices(net, training_loss(net, loss)), net.trainable_variables

    def run(*arrays):
        net.zero_grad()
        value = compute(*arrays)
        value.backward()
        return value.detach(), [gradient_of(variable.value) for variable in variables]

    add_communication(run, compute)
    return run


def gradient_of(tensor):
    """Return the gradient of a tensor; zeros if the loss does not reach it, as JAX does."""
    return torch.zeros_like(tensor) if tensor.grad is None else tensor.grad


def make_gradient_function(net, loss, faster_with_xla):
    return framework.compiled(backward(net, loss))


def make_update(net, optimiser, loss, faster_with_xla):
    run = backward(net, loss)

    def update(*arrays):
        value, gradients = run(*arrays)
        optimiser.apply(gradients, net.trainable_variables)
        return value

    step = framework.compiled(update)
    if hasattr(run, "communication"):
        step.communication = run.communication
    return step


def make_model_step(net, model, faster_with_xla):
    return torch.inference_mode()(framework.compiled(lambda *inputs: model(one_or_all(inputs), training=False)))
