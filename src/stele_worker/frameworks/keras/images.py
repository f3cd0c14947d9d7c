"""The layout of images in networks of Keras 3."""

import keras
from keras import layers

from stele_worker import frameworks

framework = frameworks.load("keras")


def to_layout(task):
    """Return the layers that bring images (batch, height, width, 3) into the layout of a network: none or one."""
    keras.config.set_image_data_format(framework.image_data_format(task.dtype))
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
