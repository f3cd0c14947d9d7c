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

from stele_worker.frameworks.numpy import fetch, peak_memory, put, take, wait  # noqa: E402, F401

BACKEND = K.backend()
LAYOUT = "NHWC" if BACKEND == "tensorflow" else "NCHW"  # TensorFlow 1 supports only NHWC on a CPU
AXIS = -1 if LAYOUT == "NHWC" else 1  # axis of the channels


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings."""
    native.configure(settings)
    K.set_floatx("float32")
    K.set_epsilon(1e-7)  # Keras clips probabilities by it
    K.set_image_data_format("channels_last" if LAYOUT == "NHWC" else "channels_first")
    numpy.random.seed(settings["seed"])  # Keras draws the seed of each dropout layer from NumPy
    if BACKEND == "tensorflow":
        K.set_session(native.session)
    if BACKEND == "cntk":
        fix_batch_normalization()


def fix_batch_normalization():
    """Pass epsilon to CNTK in training: Keras passes it as an axis, so that CNTK normalises with 1e-3."""
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
    """Convert a convolution's weight (out, in, height, width) to Keras' (height, width, in, out)."""
    if BACKEND == "theano":  # true convolution; the other backends compute a cross-correlation
        array = array[:, :, ::-1, ::-1]
    return array.transpose(2, 3, 1, 0)


def weight(array):
    """Invert ``kernel``."""
    array = array.transpose(3, 2, 0, 1)
    return array[:, :, ::-1, ::-1] if BACKEND == "theano" else array


def outputs(net, names, make_model):
    """Return run(x) -> {layer: output}. ``names`` maps names of Keras layers to the names in the result.

    ``make_model(net, outputs)`` returns the model that computes them.
    """
    inner = make_model(net, [net.get_layer(name).output for name in names])

    def run(x):
        return {name: channels_last(array) for name, array in zip(names.values(), inner.predict_on_batch(x))}

    return run


def channels_last(array):
    return array.transpose(0, 2, 3, 1) if array.ndim == 4 and LAYOUT == "NCHW" else array


def set_training_phase():
    """Fix the learning phase of layers created from now on to training.

    If the phase is chosen at each call, batch normalisation computes both phases and then selects one.
    """
    K.set_learning_phase(1)


def make_inference_model(net, output):
    """Return a model of the layers up to the network's tensor ``output``, for inference only."""
    K.set_learning_phase(0)
    x = keras.layers.Input(batch_shape=net.input_shape)
    return keras.Model(x, keras.Model(net.input, output)(x))


def cross_entropy(y_true, y_pred):
    """Return the loss of each sample."""
    return keras.losses.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)


def gradients(recipe, net, task):
    """Return run(x, y) -> (loss, {parameter: gradient})."""
    differentiate = make_gradient_function(net, cross_entropy)

    def run(x, y):
        loss, grads = differentiate(x, y)
        return loss, recipe.named(net, grads)

    return run


def inference_step(recipe, net, task):
    """Return step(x) -> logits or features."""
    return recipe.predictor(net).predict_on_batch


def make_gradient_function(net, loss):
    """Return run(x, y) -> (loss, a gradient for each of net.trainable_weights)."""
    y = K.placeholder((None, 1))
    value, weights = K.mean(loss(y, net.output)), net.trainable_weights
    if BACKEND == "cntk":  # CNTK's gradients are not part of a graph

        def run(x, y_true):
            batch = {net.input: x.astype("float32"), y: y_true.reshape(-1, 1).astype("float32")}
            grads, loss = value.grad(batch, wrt=weights, outputs=[value])
            return loss, [grads[weight] for weight in weights]

        return run
    grads = K.gradients(value, weights)
    if BACKEND == "tensorflow":
        import tensorflow as tf

        grads = [tf.convert_to_tensor(grad) for grad in grads]  # an embedding's gradient consists of slices
    compute = K.function([net.input, y], [value] + grads)

    def run_compiled(x, y_true):
        loss, *results = compute([x, y_true.reshape(-1, 1)])
        return loss, results

    return run_compiled
