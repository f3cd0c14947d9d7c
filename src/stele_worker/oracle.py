"""Float64 array operations with their gradients, for the NumPy recipes; knows neither Tasks nor names.

Every operation returns (value, backward): ``backward(g)`` takes the gradient of a loss with respect to the
value to its gradients with respect to the operation's arrays, in the order of its arguments. Images are
(batch, height, width, channel); convolution weights (out, in, height, width); dense weights (out, in).
"""

import numpy
from numpy.lib.stride_tricks import as_strided


def parameters(shapes):
    """A network as these recipes hold it: {parameter: float64 array}, still zero."""
    return {name: numpy.zeros(shape) for name, shape in shapes.items()}


def shapes(arrays):
    return {name: array.shape for name, array in arrays.items()}


def filled(net, weights):
    """The network with copies of ``weights`` for its arrays."""
    ours, theirs = shapes(net), shapes(weights)
    if ours != theirs:
        wrong = sorted(name for name in set(ours) | set(theirs) if ours.get(name) != theirs.get(name))
        raise ValueError("Weights missing, unknown or of another shape than the Task's: " + ", ".join(wrong))
    net.update((name, numpy.array(array, numpy.float64)) for name, array in weights.items())
    return net


def dense(x, weight, bias):
    """x (..., in) to (..., out)."""
    leading = tuple(range(x.ndim - 1))

    def backward(g):
        return numpy.tensordot(g, weight, 1), numpy.tensordot(g, x, (leading, leading)), g.sum(leading)

    return numpy.tensordot(x, weight.T, 1) + bias, backward


def embedding(tokens, weight):
    """Rows of weight; backward gives the gradient of the weight alone."""

    def backward(g):
        gradient = numpy.zeros_like(weight)
        numpy.add.at(gradient, tokens, g)
        return gradient

    return weight[tokens], backward


def padded(x, margin, value=0.0):
    margins = [(0, 0), (margin, margin), (margin, margin), (0, 0)]
    return numpy.pad(x, margins, "constant", constant_values=value)


def offsets(size, stride, height, width):
    """(row, column, slices) of a window: what its placements see there of a padded image."""
    for row in range(size):
        for column in range(size):
            rows = slice(row, row + stride * height, stride)
            columns = slice(column, column + stride * width, stride)
            yield row, column, (slice(None), rows, columns)


def convolution(x, weight, bias=0.0, *, stride=1):
    """Square windows of odd size, padded by half a window on every side."""
    size = weight.shape[2]
    margin = size // 2
    x = padded(x, margin)
    batch, height, width, channels = x.shape
    height, width = (height - size) // stride + 1, (width - size) // stride + 1
    n, h, w, c = x.strides
    shape, strides = (batch, height, width, size, size, channels), (n, stride * h, stride * w, h, w, c)
    windows = as_strided(x, shape, strides)

    def backward(g):
        d_weight = numpy.tensordot(g, windows, ((0, 1, 2), (0, 1, 2))).transpose(0, 3, 1, 2)
        d_x = numpy.zeros_like(x)
        for row, column, seen in offsets(size, stride, height, width):
            d_x[seen] += numpy.tensordot(g, weight[:, :, row, column], 1)
        return d_x[:, margin : x.shape[1] - margin, margin : x.shape[2] - margin], d_weight, g.sum((0, 1, 2))

    return numpy.tensordot(windows, weight, ((3, 4, 5), (2, 3, 1))) + bias, backward


def max_pool(x, *, size, stride, padding=0):
    """Of equal values in a window, the first has the gradient."""
    x = padded(x, padding, value=-numpy.inf)
    height, width = (x.shape[1] - size) // stride + 1, (x.shape[2] - size) // stride + 1
    places = [seen for _, _, seen in offsets(size, stride, height, width)]
    values = numpy.stack([x[seen] for seen in places])
    winner = values.argmax(0)

    def backward(g):
        d_x = numpy.zeros_like(x)
        for place, seen in enumerate(places):
            d_x[seen] += g * (winner == place)
        return d_x[:, padding : x.shape[1] - padding, padding : x.shape[2] - padding]

    return values.max(0), backward


def average_pool(x):
    """The mean image: (batch, height, width, channel) to (batch, channel)."""

    def backward(g):
        return numpy.broadcast_to(g[:, None, None], x.shape) / (x.shape[1] * x.shape[2])

    return x.mean((1, 2)), backward


def channels_first(x):
    """(batch, height, width, channel) to (batch, channel * height * width)."""
    batch, height, width, channels = x.shape

    def backward(g):
        return g.reshape(batch, channels, height, width).transpose(0, 2, 3, 1)

    return x.transpose(0, 3, 1, 2).reshape(batch, -1), backward


def relu(x):
    return numpy.maximum(x, 0), lambda g: g * (x > 0)


def dropout(x, rate, random):
    """Inverted dropout; with ``random`` None, as in inference, x itself."""
    if random is None or rate == 0:
        return x, lambda g: g
    kept = (random.uniform(size=x.shape) >= rate) / (1 - rate)
    return x * kept, lambda g: g * kept


def normalise(x, scale, shift, mean, variance, epsilon):
    """Batch normalisation by given statistics; without a backward, as it is of use in inference alone."""
    return (x - mean) / numpy.sqrt(variance + epsilon) * scale + shift


def batch_norm(x, scale, shift, epsilon):
    """Batch normalisation by the batch's own mean and biased variance.

    Returns (value, backward, (mean, unbiased variance)), the last for the running statistics.
    """
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    count = x.size // x.shape[3]
    deviation = numpy.sqrt(variance + epsilon)
    standard = (x - mean) / deviation

    def backward(g):
        d_scale, d_shift = (g * standard).sum((0, 1, 2)), g.sum((0, 1, 2))
        return scale / deviation * (g - d_shift / count - standard * d_scale / count), d_scale, d_shift

    return standard * scale + shift, backward, (mean, variance * count / (count - 1))


def softmax_cross_entropy(logits, labels):
    """Mean over the batch; backward gives the gradient of the logits."""
    rows = numpy.arange(len(labels))
    shifted = logits - logits.max(1, keepdims=True)
    logarithms = shifted - numpy.log(numpy.exp(shifted).sum(1, keepdims=True))

    def backward(g=1.0):
        d_logits = numpy.exp(logarithms)
        d_logits[rows, labels] -= 1
        return g * d_logits / len(labels)

    return -logarithms[rows, labels].mean(), backward


def sgd(net, *, learning_rate, momentum):
    """An update of the network in place: v = momentum * v + g; w = w - learning_rate * v."""
    velocity = {}

    def update(gradients):
        for name, g in gradients.items():
            velocity[name] = momentum * velocity.get(name, 0.0) + g
            net[name] -= learning_rate * velocity[name]

    return update


def adam(net, *, learning_rate, beta1, beta2, epsilon):
    """An update of the network in place; both moments bias-corrected, epsilon outside the root."""
    first, second = parameters(shapes(net)), parameters(shapes(net))
    steps = 0

    def update(gradients):
        nonlocal steps
        steps += 1
        for name, g in gradients.items():
            mean, square = first[name], second[name]
            mean *= beta1
            mean += (1 - beta1) * g
            square *= beta2
            square += (1 - beta2) * g * g
            root = numpy.sqrt(square / (1 - beta2**steps))
            root += epsilon
            net[name] -= learning_rate / (1 - beta1**steps) * mean / root

    return update
