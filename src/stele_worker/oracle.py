"""Float64 array operations and their gradients, for the NumPy recipes. Independent of Tasks and parameter names.

Every operation returns (value, backward). ``backward(g)`` maps the gradient of a loss with respect to the value
to the gradients with respect to the operation's arrays, in the order of the arguments. Images are
(batch, height, width, channel), convolution weights (out, in, height, width), dense weights (out, in).
"""

import numpy
from numpy.lib.stride_tricks import as_strided


def zero_parameters(shapes):
    """Return a network of these recipes, {parameter: float64 array}, filled with zeros."""
    return {name: numpy.zeros(shape) for name, shape in shapes.items()}


def shapes_of(arrays):
    return {name: array.shape for name, array in arrays.items()}


def load_weights(net, weights):
    """Return the network with copies of ``weights``. Raises ValueError if names or shapes do not match."""
    expected, actual = shapes_of(net), shapes_of(weights)
    if expected != actual:
        wrong = sorted(name for name in set(expected) | set(actual) if expected.get(name) != actual.get(name))
        raise ValueError(
            "weights missing, unknown or different in shape from the Task's: " + ", ".join(wrong)
        )
    net.update((name, numpy.array(array, numpy.float64)) for name, array in weights.items())
    return net


def dense(x, weight, bias):
    """Map x (..., in) to (..., out)."""
    leading = tuple(range(x.ndim - 1))

    def backward(g):
        return numpy.tensordot(g, weight, 1), numpy.tensordot(g, x, (leading, leading)), g.sum(leading)

    return numpy.tensordot(x, weight.T, 1) + bias, backward


def embedding(tokens, weight):
    """Return the rows of weight for ``tokens``; backward returns only the gradient of the weight."""

    def backward(g):
        gradient = numpy.zeros_like(weight)
        numpy.add.at(gradient, tokens, g)
        return gradient

    return weight[tokens], backward


def pad(x, width, value=0.0):
    widths = [(0, 0), (width, width), (width, width), (0, 0)]
    return numpy.pad(x, widths, "constant", constant_values=value)


def offsets(size, stride, height, width):
    """Yield (row, column, slices) for each place of a window; the slices select that place of a padded image."""
    for row in range(size):
        for column in range(size):
            rows = slice(row, row + stride * height, stride)
            columns = slice(column, column + stride * width, stride)
            yield row, column, (slice(None), rows, columns)


def convolution(x, weight, bias=0.0, *, stride=1):
    """Convolve with square windows of odd size, padded by half a window on every side."""
    size = weight.shape[2]
    padding = size // 2
    x = pad(x, padding)
    batch, height, width, channels = x.shape
    height, width = (height - size) // stride + 1, (width - size) // stride + 1
    n, h, w, c = x.strides
    shape, strides = (batch, height, width, size, size, channels), (n, stride * h, stride * w, h, w, c)
    windows = as_strided(x, shape, strides)

    def backward(g):
        d_weight = numpy.tensordot(g, windows, ((0, 1, 2), (0, 1, 2))).transpose(0, 3, 1, 2)
        d_x = numpy.zeros_like(x)
        for row, column, slices in offsets(size, stride, height, width):
            d_x[slices] += numpy.tensordot(g, weight[:, :, row, column], 1)
        d_x = d_x[:, padding : x.shape[1] - padding, padding : x.shape[2] - padding]
        return d_x, d_weight, g.sum((0, 1, 2))

    return numpy.tensordot(windows, weight, ((3, 4, 5), (2, 3, 1))) + bias, backward


def max_pool(x, *, size, stride, padding=0):
    """Return the maximum of each window; of equal values, the first receives the gradient."""
    x = pad(x, padding, value=-numpy.inf)
    height, width = (x.shape[1] - size) // stride + 1, (x.shape[2] - size) // stride + 1
    places = [slices for _, _, slices in offsets(size, stride, height, width)]
    values = numpy.stack([x[slices] for slices in places])
    largest = values.argmax(0)

    def backward(g):
        d_x = numpy.zeros_like(x)
        for place, slices in enumerate(places):
            d_x[slices] += g * (largest == place)
        return d_x[:, padding : x.shape[1] - padding, padding : x.shape[2] - padding]

    return values.max(0), backward


def average_pool(x):
    """Average over rows and columns: (batch, height, width, channel) to (batch, channel)."""

    def backward(g):
        return numpy.broadcast_to(g[:, None, None], x.shape) / (x.shape[1] * x.shape[2])

    return x.mean((1, 2)), backward


def channels_first(x):
    """Flatten (batch, height, width, channel) to (batch, channel * height * width)."""
    batch, height, width, channels = x.shape

    def backward(g):
        return g.reshape(batch, channels, height, width).transpose(0, 2, 3, 1)

    return x.transpose(0, 3, 1, 2).reshape(batch, -1), backward


def relu(x):
    return numpy.maximum(x, 0), lambda g: g * (x > 0)


def dropout(x, rate, random):
    """Apply inverted dropout; return x unchanged if ``random`` is None, as in inference."""
    if random is None or rate == 0:
        return x, lambda g: g
    mask = (random.uniform(size=x.shape) >= rate) / (1 - rate)
    return x * mask, lambda g: g * mask


def normalise(x, scale, shift, mean, variance, epsilon):
    """Normalise by the given statistics. For inference only, so there is no backward."""
    return (x - mean) / numpy.sqrt(variance + epsilon) * scale + shift


def batch_norm(x, scale, shift, epsilon):
    """Normalise by the batch's mean and biased variance.

    Return (value, backward, (mean, unbiased variance)); the last pair updates the running statistics.
    """
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    count = x.size // x.shape[3]
    deviation = numpy.sqrt(variance + epsilon)
    normalised = (x - mean) / deviation

    def backward(g):
        d_scale, d_shift = (g * normalised).sum((0, 1, 2)), g.sum((0, 1, 2))
        return scale / deviation * (g - d_shift / count - normalised * d_scale / count), d_scale, d_shift

    return normalised * scale + shift, backward, (mean, variance * count / (count - 1))


def softmax_cross_entropy(logits, labels):
    """Return the mean over the batch; backward returns the gradient of the logits."""
    rows = numpy.arange(len(labels))
    shifted = logits - logits.max(1, keepdims=True)
    logarithms = shifted - numpy.log(numpy.exp(shifted).sum(1, keepdims=True))

    def backward(g=1.0):
        d_logits = numpy.exp(logarithms)
        d_logits[rows, labels] -= 1
        return g * d_logits / len(labels)

    return -logarithms[rows, labels].mean(), backward


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
