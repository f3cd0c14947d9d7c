"""Keras 2 on the backend in KERAS_BACKEND: TensorFlow 1, Theano or CNTK.

Its functions take and return NumPy arrays. Only the CPU is supported, so these arrays are on the device. This module
has the operations for which Keras has no API that works on all three backends.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow reads the level of warnings at import

from stele_worker.frameworks import load

MODULES = {"tensorflow": "tensorflow1", "theano": "theano", "cntk": "cntk"}
native = load(MODULES[os.environ["KERAS_BACKEND"]])  # first: it sets variables that Theano reads at import

import keras  # noqa: E402
import numpy  # noqa: E402
from keras import backend as K  # noqa: E402

from stele_worker.frameworks.numpy import framework as of_numpy  # noqa: E402

BACKEND = K.backend()
LAYOUT = "NHWC" if BACKEND == "tensorflow" else "NCHW"  # TensorFlow 1 supports only NHWC on a CPU
AXIS = -1 if LAYOUT == "NHWC" else 1  # axis of the channels


def fix_batch_normalization():
    """Pass epsilon to CNTK in training: Keras passes it as an axis, so that CNTK normalises with 1e-3."""
    from keras.backend import cntk_backend

    def batch_normalization(x, mean, var, beta, gamma, epsilon):
        return K.batch_normalization(x, mean, var, beta, gamma, epsilon=epsilon)

    cntk_backend.batch_normalization = batch_normalization


class Framework(of_numpy.Framework):
    def configure(self, settings):
        native.configure(settings)
        K.set_floatx("float32")
        K.set_epsilon(1e-7)  # Keras clips probabilities by it
        K.set_image_data_format("channels_last" if LAYOUT == "NHWC" else "channels_first")
        numpy.random.seed(settings["seed"])  # Keras draws the seed of each dropout layer from NumPy
        if BACKEND == "tensorflow":
            K.set_session(native.session)
        if BACKEND == "cntk":
            fix_batch_normalization()

    def versions(self):
        return {"keras": keras.__version__, **native.versions()}

    def flags(self):
        facts = {"backend": BACKEND, "floatx": K.floatx(), "epsilon": K.epsilon()}
        facts["image_data_format"] = K.image_data_format()
        facts.update(native.flags())
        return facts
