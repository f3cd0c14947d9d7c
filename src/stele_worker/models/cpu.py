"""Keep a worker that only inspects on the CPU. It is not for one that measures: frameworks read this once."""

import os
import sys

os.environ.setdefault("KERAS_TORCH_DEVICE", "cpu")  # read when Keras is imported


def use():
    """Restrict the frameworks that the user's module has imported to the CPU, if they have not made an array yet."""
    for name, keep in KEEP.items():
        if name in sys.modules:
            keep(sys.modules[name])


def keep_jax(jax):
    jax.config.update("jax_platforms", "cpu")


def keep_tensorflow(tensorflow):
    try:
        tensorflow.config.set_visible_devices([], "GPU")
    except RuntimeError:  # it has made an array
        pass


def keep_paddle(paddle):
    paddle.set_device("cpu")


KEEP = {"jax": keep_jax, "tensorflow": keep_tensorflow, "paddle": keep_paddle}
