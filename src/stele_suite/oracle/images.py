"""Operations on images, and batch normalisation. See ``stele_suite.oracle``."""

import numpy
from numpy.lib.stride_tricks import as_strided


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


def convolution(x, weight, bias=0.0, *, stride=1, padding=None):
    """Convolve with square windows, padded by ``padding`` on every side; default: by half a window."""
    size = weight.shape[2]
    padding = size // 2 if padding is None else padding
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


def depthwise_convolution(x, weight, *, stride=1):
    """Convolve each channel by itself, with weight (channel, 1, height, width), padded by half a window."""
    size = weight.shape[2]
    padding = size // 2
    x = pad(x, padding)
    height, width = (x.shape[1] - size) // stride + 1, (x.shape[2] - size) // stride + 1
    places = list(offsets(size, stride, height, width))

    def backward(g):
        d_x, d_weight = numpy.zeros_like(x), numpy.empty_like(weight)
        for row, column, slices in places:
            d_x[slices] += g * weight[:, 0, row, column]
            d_weight[:, 0, row, column] = (g * x[slices]).sum((0, 1, 2))
        return d_x[:, padding : x.shape[1] - padding, padding : x.shape[2] - padding], d_weight

    return sum(x[slices] * weight[:, 0, row, column] for row, column, slices in places), backward


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


def average_windows(x):
    """Average windows of 2x2 pixels; the height and the width are even."""
    batch, height, width, channels = x.shape
    windows = x.reshape(batch, height // 2, 2, width // 2, 2, channels)

    def backward(g):
        return g.repeat(2, axis=1).repeat(2, axis=2) / 4

    return windows.mean((2, 4)), backward


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


def normalise(x, scale, shift, mean, variance, epsilon):
    """Normalise by the given statistics. For inference only, so there is no backward."""
    return (x - mean) / numpy.sqrt(variance + epsilon) * scale + shift


def ghost_batch_norm(x, scale, shift, epsilon, size):
    """Normalise groups of ``size`` images by themselves: image i belongs to group i modulo the number of groups.

    The statistics are means over the groups. Source: Hoffer, Hubara and Soudry, 2017.
    """
    groups, (batch, height, width, channels) = len(x) // size, x.shape

    def fold(x):
        x = x.reshape(size, groups, height, width, channels).transpose(0, 2, 3, 1, 4)
        return x.reshape(size, height, width, groups * channels)

    def unfold(x):
        x = x.reshape(size, height, width, groups, channels).transpose(0, 3, 1, 2, 4)
        return x.reshape(batch, height, width, channels)

    def by_group(values):
        return values.reshape(groups, channels)

    scales, shifts = numpy.tile(scale, groups), numpy.tile(shift, groups)
    value, folded_backward, statistics = batch_norm(fold(x), scales, shifts, epsilon)

    def backward(g):
        d_x, d_scale, d_shift = folded_backward(fold(g))
        return unfold(d_x), by_group(d_scale).sum(0), by_group(d_shift).sum(0)

    return unfold(value), backward, tuple(by_group(statistic).mean(0) for statistic in statistics)


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
