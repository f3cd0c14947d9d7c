"""The loss and the optimizers. See ``stele_worker.oracle``."""

import numpy

from stele_worker.oracle.networks import shapes_of, zero_parameters


def softmax_cross_entropy(logits, labels, smoothing=0.0):
    """Return the mean over all labels, of logits (..., classes); backward returns the gradient of the logits.

    ``smoothing`` is the part of each label that is spread evenly over all classes.
    """
    flat = logits.reshape(-1, logits.shape[-1])
    places = numpy.arange(labels.size), labels.reshape(-1)
    shifted = flat - flat.max(1, keepdims=True)
    logarithms = shifted - numpy.log(numpy.exp(shifted).sum(1, keepdims=True))

    def backward(g=1.0):
        d_logits = numpy.exp(logarithms) - smoothing / flat.shape[1]
        d_logits[places] -= 1 - smoothing
        return g * d_logits.reshape(logits.shape) / labels.size

    return -(1 - smoothing) * logarithms[places].mean() - smoothing * logarithms.mean(), backward


def sgd(net, *, learning_rate, momentum):
    """Return update(gradients), which changes the network in place: v = momentum * v + g; w = w - learning_rate * v."""
    velocity = {}

    def update(gradients):
        for name, g in gradients.items():
            velocity[name] = momentum * velocity.get(name, 0.0) + g
            net[name] -= learning_rate * velocity[name]

    return update


def adam(net, *, learning_rate, beta1, beta2, epsilon):
    """Return update(gradients): changes the network in place; moments bias-corrected, epsilon outside the root."""
    means, squares = zero_parameters(shapes_of(net)), zero_parameters(shapes_of(net))
    steps = 0

    def update(gradients):
        nonlocal steps
        steps += 1
        for name, g in gradients.items():
            mean, square = means[name], squares[name]
            mean *= beta1
            mean += (1 - beta1) * g
            square *= beta2
            square += (1 - beta2) * g * g
            root = numpy.sqrt(square / (1 - beta2**steps))
            root += epsilon
            net[name] -= learning_rate / (1 - beta1**steps) * mean / root

    return update
