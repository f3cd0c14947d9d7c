"""The loss and the optimizers. See ``stele_suite.oracle``."""

import numpy

from stele_suite.oracle.networks import shapes_of, zero_parameters


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


def sigmoid_cross_entropy(logits, targets):
    """Return the mean of the binary cross-entropies of all labels; backward returns the gradient of the logits."""
    losses = numpy.maximum(logits, 0) - logits * targets + numpy.log1p(numpy.exp(-abs(logits)))

    def backward(g=1.0):
        return g * ((1 + numpy.tanh(logits / 2)) / 2 - targets) / logits.size

    return losses.mean(), backward


def mean_squared_error(output, target):
    """Return the mean of the squared errors of all numbers; backward returns the gradient of the output."""
    error = output - target
    return (error**2).mean(), lambda g=1.0: g * 2 * error / error.size


def sgd(net, *, learning_rate, momentum):
    """Return update(gradients), which changes the network in place: v = momentum * v + g; w = w - learning_rate * v."""
    velocity = {}

    def update(gradients):
        for name, g in gradients.items():
            velocity[name] = momentum * velocity.get(name, 0.0) + g
            net[name] -= learning_rate * velocity[name]

    return update


def nesterov(net, *, rates, momentum, rate_and_decay):
    """Return update(gradients), which changes the network in place, with the learning rate inside the velocity.

    ``rates`` has the learning rate of each step. rate_and_decay(parameter) returns a factor on it, and the decay.
    """
    velocity, steps = {}, 0

    def update(gradients):
        nonlocal steps
        rate = rates[min(steps, len(rates) - 1)]
        steps += 1
        for name, g in gradients.items():
            factor, decay = rate_and_decay(name)
            change = -factor * rate * (g + decay * net[name])
            velocity[name] = momentum * velocity.get(name, 0.0) + change
            net[name] += momentum * velocity[name] + change

    return update


def newton_schulz(matrix, coefficients, iterations, smallest_norm):
    """Return a matrix with the same singular vectors as ``matrix``, and singular values near 1.

    Source: Jordan, "Muon: an optimizer for hidden layers in neural networks", 2024.
    """
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.T
    x, (a, b, c) = x / (numpy.linalg.norm(x) + smallest_norm), coefficients
    for _ in range(iterations):
        square = x.dot(x.T)
        x = a * x + (b * square + c * square.dot(square)).dot(x)
    return x if wide else x.T


def muon(net, *, momentum, orthogonal):
    """Return update(gradients, rate): scale filters to norm sqrt(outputs); move along the orthogonal momentum."""
    velocity = {}

    def update(gradients, rate):
        for name, g in gradients.items():
            velocity[name] = momentum * velocity.get(name, 0.0) + g
            direction = orthogonal((g + momentum * velocity[name]).reshape(len(g), -1)).reshape(g.shape)
            net[name] = net[name] * (len(g) ** 0.5 / numpy.linalg.norm(net[name])) - rate * direction

    return update


def outer_nesterov(net, *, momentum, rate_and_decay):
    """Return update(gradients, factor), with the learning rates outside the velocity: factor(parameter) times rate."""
    velocity = {}

    def update(gradients, factor):
        for name, g in gradients.items():
            rate, decay = rate_and_decay(name)
            g = g + decay * net[name]
            velocity[name] = momentum * velocity.get(name, 0.0) + g
            net[name] -= factor(name) * rate * (g + momentum * velocity[name])

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
