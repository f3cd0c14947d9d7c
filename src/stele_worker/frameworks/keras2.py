"""Keras 2 around any Task, on the backend that KERAS_BACKEND names: TensorFlow 1, Theano or CNTK.

Its functions take NumPy's arrays and return them: on a CPU, which is all that it computes on here, they are on
the device. What is here is what a model cannot be asked for in the words of all three backends.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # warnings are read at the import

from stele_worker.frameworks import load

MODULES = {"tensorflow": "tensorflow1", "theano": "theano", "cntk": "cntk"}
native = load(MODULES[os.environ["KERAS_BACKEND"]])  # first, for it sets what Theano reads at its import

import keras  # noqa: E402
import numpy  # noqa: E402
from keras import backend as K  # noqa: E402

from stele_worker.frameworks.numpy import fetch, peak_memory, put, take, wait  # noqa: E402, F401

BACKEND = K.backend()
LAYOUT = "NHWC" if BACKEND == "tensorflow" else "NCHW"  # on a CPU TensorFlow 1 has no other; the others' own
AXIS = -1 if LAYOUT == "NHWC" else 1  # of the channels


def configure(settings):
    """See ``stele_worker.frameworks``; settings as in ``stele_worker.protocol``."""
    native.configure(settings)
    K.set_floatx("float32")
    K.set_epsilon(1e-7)  # where it clips probabilities
    K.set_image_data_format("channels_last" if LAYOUT == "NHWC" else "channels_first")
    numpy.random.seed(settings["seed"])  # draws the seed of every layer that has dropout
    if BACKEND == "tensorflow":
        K.set_session(native.session)
    if BACKEND == "cntk":
        mend_batch_normalization()


def mend_batch_normalization():
    """In training, Keras calls CNTK's with epsilon in the place of an axis, and so normalises with 1e-3."""
    from keras.backend import cntk_backend

    def batch_normalization(x, mean, var, beta, gamma, epsilon):
        return K.batch_normalization(x, mean, var, beta, gamma, epsilon=epsilon)

    cntk_backend.batch_normalization = batch_normalization


def versions():
    return {"keras": keras.__version__, **native.versions()}


def flags():
    facts = {"backend": BACKEND, "floatx": K.floatx(), "epsilon": K.epsilon()}
    facts["image_data_format"] = K.image_data_format()
    facts.update(native.flags())
    return facts


def kernel(array):
    """A convolution's weight (out, in, height, width) as Keras has it: (height, width, in, out)."""
    if BACKEND == "theano":  # which convolves, where the others correlate
        array = array[:, :, ::-1, ::-1]
    return array.transpose(2, 3, 1, 0)


def weight(array):
    """``kernel`` undone."""
    array = array.transpose(3, 2, 0, 1)
    return array[:, :, ::-1, ::-1] if BACKEND == "theano" else array


def outputs(net, names, inferred):
    """run(x) -> {layer: output}, of the Keras layers that are the keys of ``names``, under the names they map to.

    ``inferred(input, outputs)`` makes the model that computes them.
    """
    inner = inferred(net, [net.get_layer(name).output for name in names])

    def run(x):
        return {name: channels_last(array) for name, array in zip(names.values(), inner.predict_on_batch(x))}

    return run


def channels_last(array):
    return array.transpose(0, 2, 3, 1) if array.ndim == 4 and LAYOUT == "NCHW" else array


def for_training():
    """Layers made from now on are for training alone.

    Left to be told at each call, batch normalisation computes what it does in training and what it does in
    inference, and then selects one.
    """
    K.set_learning_phase(1)


def for_inference(net, output):
    """The layers that lead to a network's tensor ``output`` once more, for inference alone."""
    K.set_learning_phase(0)
    x = keras.layers.Input(batch_shape=net.input_shape)
    return keras.Model(x, keras.Model(net.input, output)(x))


def differentiated(net, loss):
    """run(x, y) -> (loss, a gradient for each of net.trainable_weights)."""
    y = K.placeholder((None, 1))
    value, weights = K.mean(loss(y, net.output)), net.trainable_weights
    if BACKEND == "cntk":  # whose gradients are no part of a graph

        def run(x, y_true):
            batch = {net.input: x.astype("float32"), y: y_true.reshape(-1, 1).astype("float32")}
            grads, loss = value.grad(batch, wrt=weights, outputs=[value])
            return loss, [grads[weight] for weight in weights]

        return run
    grads = K.gradients(value, weights)
    if BACKEND == "tensorflow":
        import tensorflow as tf

        grads = [tf.convert_to_tensor(slope) for slope in grads]  # an embedding's comes as slices
    compute = K.function([net.input, y], [value] + grads)

    def run_compiled(x, y_true):
        loss, *found = compute([x, y_true.reshape(-1, 1)])
        return loss, found

    return run_compiled
