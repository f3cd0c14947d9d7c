"""Networks of images in Keras 3: the layout of images, and the names and layouts of parameters."""

import keras
from keras import layers

from stele_worker.frameworks.keras import image_data_format, named, parameters, plain, task_names

__all__ = ["named", "plain"]


def to_layout(task):
    """Return the layers that bring images (batch, height, width, 3) into the layout of a network: none or one."""
    keras.config.set_image_data_format(image_data_format(task.dtype))
    if channel_axis() == -1:
        return []
    return [layers.Lambda(lambda x: x.permute(0, 3, 1, 2).contiguous())]


def image_input(size, task):
    """Return the input of a network, (batch, size, size, 3), and the same images in the layout of its layers."""
    x = images = keras.Input((size, size, 3))
    for layer in to_layout(task):
        x = layer(x)
    return images, x


def channel_axis():
    """Return the axis of the channels in the layers of a network."""
    return 1 if keras.config.image_data_format() == "channels_first" else -1


def per_channel(values):
    """Return a value for each channel in a shape that can be multiplied by images."""
    return keras.ops.reshape(values, (-1, 1, 1)) if channel_axis() == 1 else values


def load(net, weights):
    for variable, name in zip(net.weights, task_names(net.weights)):
        variable.assign(arranged(name, weights[name]))
    return net


def stored(net):
    return named(net.weights, parameters(net))


def arranged(name, array):
    """Return a weight in the layout of Keras."""
    if "depthwise" in name and array.ndim == 4:
        return array.transpose(2, 3, 0, 1)  # (height, width, channel, 1)
    return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T  # (height, width, in, out)


def neutral(name, array):
    """Return a weight in the layout of the Task."""
    if "depthwise" in name and array.ndim == 4:
        return array.transpose(2, 3, 0, 1)
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T
