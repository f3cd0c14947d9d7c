"""TensorFlow 1: one graph, one session, and arrays that stay in the session as tensor handles.

A handle names a tensor that one run of the session left on the device. A later run takes it in place of a
placeholder, so that no array is copied to feed a step. In mode "eager" there is neither a graph nor a session.
"""

import os
from functools import partial

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow reads the level of warnings at import

import tensorflow as tf

from stele_worker import modes

MODES = ("session", "eager")
mode = "session"
session = None


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings."""
    global mode, session
    mode = settings["mode"]
    if settings["device"] != "cpu":
        message = "TensorFlow {} has GPU kernels for CUDA 10.0 only, which is not supported: use device 'cpu'"
        raise RuntimeError(message.format(tf.__version__))
    if settings["precision"] != "fp32":
        message = "TensorFlow {} supports precision 'fp32' only on a CPU, not {!r}: use precision 'fp32'"
        raise RuntimeError(message.format(tf.__version__, settings["precision"]))
    tf.logging.set_verbosity(tf.logging.ERROR)
    config = tf.ConfigProto(
        intra_op_parallelism_threads=settings["threads"],
        inter_op_parallelism_threads=settings["threads"],
        device_count={"GPU": 0},
    )
    if mode == "eager":
        tf.enable_eager_execution(config)
    # determinism needs no setting: the CPU kernels that the recipes use have a fixed order of summation
    tf.set_random_seed(settings["seed"])
    session = tf.Session(config=config)


def versions():
    return {"tensorflow": tf.__version__, "cuda": None, "cudnn": None}


def flags():
    config = session._config
    return {
        "device": ", ".join(device.name for device in session.list_devices() if device.device_type == "CPU"),
        "threads": config.intra_op_parallelism_threads,
        "interop_threads": config.inter_op_parallelism_threads,
        "xla": config.graph_options.optimizer_options.global_jit_level > 0,
        "seed": tf.get_default_graph().seed,
    }


def in_force():
    """Return whether TensorFlow executes eagerly."""
    done = {"eager": int(tf.executing_eagerly())}
    return modes.check(mode, done, tf.executing_eagerly() == (mode == "eager"))


def make_variables(arrays):
    """Return a variable for each named array. As constants the arrays would make the graph large."""
    if mode == "eager":
        return {name: tf.Variable(array, name=name) for name, array in arrays.items()}
    values = {name: tf.placeholder(array.dtype, array.shape) for name, array in arrays.items()}
    result = {name: tf.Variable(value, name=name, use_resource=True) for name, value in values.items()}
    # all at once: in a larger graph, the first run of an operation takes longer
    initializers = [variable.initializer for variable in result.values()]
    session.run(initializers, {values[name]: array for name, array in arrays.items()})
    return result


def read_values(variables):
    """Return the values of variables, by name."""
    if mode == "eager":
        return {name: variable.numpy() for name, variable in variables.items()}
    return session.run(dict(variables))


def make_function(inputs, outputs, optimiser=None):
    """Return f(*handles or arrays) -> the values of ``outputs``; initialise the optimiser's variables first."""
    if optimiser is not None:
        session.run(tf.variables_initializer(optimiser.variables()))
    return session.make_callable(outputs, feed_list=inputs)


def labels():
    return tf.placeholder(tf.int32, (None,))


def gradients(recipe, net, task):
    """Return run(x, y) -> (loss, {parameter: gradient})."""
    compute, weights = partial(recipe.loss, net, task), recipe.trainable(net)
    if mode == "eager":
        return lambda x, y: differentiate(compute, weights, x, y)
    x, y = recipe.inputs(task), recipe.targets(task) if hasattr(recipe, "targets") else labels()
    return make_function([x, y], differentiate(compute, weights, x, y))


def differentiate(loss, weights, x, y):
    """Return the loss, and {parameter: gradient}: tensors of the graph, or values in eager mode."""
    names, variables = list(weights), list(weights.values())
    if mode == "eager":
        with tf.GradientTape() as tape:
            value = loss(x, y)
        grads = tape.gradient(value, variables)
    else:
        value = loss(x, y)
        grads = tf.gradients(value, variables)
    # the gradient of an embedding consists of slices
    return value, dict(zip(names, map(tf.convert_to_tensor, grads)))


def make_training_step(inputs, loss, weights, optimiser, count=None, targets=labels):
    """Return step(x, y) -> loss, which updates the parameters, and ``count``, a variable that counts the steps."""

    def update(x, y):
        value, grads = differentiate(loss, weights, x, y)
        pairs = [(grads[name], weight) for name, weight in weights.items()]
        return value, optimiser.apply_gradients(pairs, global_step=count)

    if mode == "eager":
        return lambda x, y: update(x, y)[0]
    before = len(tf.get_collection(UPDATES))
    x, y = inputs(), targets()
    value, applied = update(x, y)
    updates = tf.get_collection(UPDATES)[before:]  # of this network only
    run = make_function([x, y], [value, applied, updates], optimiser)
    return lambda x, y: run(x, y)[0]


UPDATES = tf.GraphKeys.UPDATE_OPS


def with_step(update):
    """Run an update with each training step; in eager mode it has already run."""
    if mode != "eager":
        tf.add_to_collection(UPDATES, update)


def inference_step(recipe, net, task):
    """Return step(x) -> logits or features."""
    if mode == "eager":
        return lambda x: recipe.predict(net, task, x)
    x = recipe.inputs(task)
    return make_function([x], recipe.predict(net, task, x))


def make_handle_function(inputs, tensor):
    """Return f(*handles or arrays) -> a handle of the tensor's value."""
    return session.make_callable(tf.get_session_handle(tensor), feed_list=inputs)


copy_functions = {}  # dtype -> (put, take): created once, because a growing graph gets slower


def get_copy_functions(dtype):
    if dtype not in copy_functions:
        data, rows = tf.placeholder(dtype), tf.placeholder(tf.int64, [None])
        copy_functions[dtype] = (
            make_handle_function([data], tf.identity(data)),
            make_handle_function([data, rows], tf.gather(data, rows)),
        )
    return copy_functions[dtype]


def put(array):
    if mode == "eager":
        return tf.constant(array)
    return get_copy_functions(array.dtype.name)[0](array)


def take(data, rows):
    if mode == "eager":
        return tf.gather(data, rows)
    return get_copy_functions(data._dtype.as_numpy_dtype.__name__)[1](data, rows)


def wait(value):
    pass  # a session's run returns after its computation


def fetch(value):
    return value.numpy() if hasattr(value, "numpy") else value  # a run returns NumPy arrays


def peak_memory():
    return None
