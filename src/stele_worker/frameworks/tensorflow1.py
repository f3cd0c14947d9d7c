"""TensorFlow 1 around any Task: one graph and one session, and arrays that stay in it as tensor handles.

A handle names a tensor that one run of the session has left on the device and that another takes in the
place of a placeholder, so that a step is fed nothing but names.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # warnings are read at the import

import tensorflow as tf

session = None


def configure(settings):
    """See ``stele_worker.frameworks``; settings as in ``stele_worker.protocol``."""
    global session
    if settings["device"] != "cpu":
        message = "TensorFlow {} has GPU kernels for CUDA 10.0 only, which nothing here was tried with: "
        raise RuntimeError(message.format(tf.__version__) + "ask for device cpu.")
    if settings["precision"] != "fp32":
        message = "TensorFlow {} has float32 arithmetic on a CPU and no {}: ask for precision fp32."
        raise RuntimeError(message.format(tf.__version__, settings["precision"]))
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.set_random_seed(settings["seed"])
    # no setting asks for determinism: no kernel for the CPU that the recipes use adds up in an order of chance
    session = tf.Session(
        config=tf.ConfigProto(
            intra_op_parallelism_threads=settings["threads"],
            inter_op_parallelism_threads=settings["threads"],
            device_count={"GPU": 0},
        )
    )


def versions():
    return {"tensorflow": tf.__version__, "cuda": None, "cudnn": None}


def flags():
    config = session._config
    return {
        "device": ", ".join(device.name for device in session.list_devices() if device.device_type == "CPU"),
        "threads": config.intra_op_parallelism_threads,
        "interop_threads": config.inter_op_parallelism_threads,
        "xla": config.graph_options.optimizer_options.global_jit_level > 0,
        "graph_seed": tf.get_default_graph().seed,
    }


def variables(arrays):
    """A variable for each of the named arrays, which would make the graph large if they were constants there."""
    values = {name: tf.placeholder(array.dtype, array.shape) for name, array in arrays.items()}
    made = {name: tf.Variable(value, name=name, use_resource=True) for name, value in values.items()}
    # all at once, for the first run of an operation takes the longer the larger the graph is
    first = [variable.initializer for variable in made.values()]
    session.run(first, {values[name]: array for name, array in arrays.items()})
    return made


def values(variables):
    """Of variables, by name."""
    return session.run(dict(variables))


def function(inputs, outputs, optimiser=None):
    """f(*handles or arrays) -> the values of outputs, once the optimiser's variables have their first values."""
    if optimiser is not None:
        session.run(tf.variables_initializer(optimiser.variables()))
    return session.make_callable(outputs, feed_list=inputs)


def kept(inputs, tensor):
    """f(*handles or arrays) -> a handle of the tensor's value."""
    return session.make_callable(tf.get_session_handle(tensor), feed_list=inputs)


movers = {}  # dtype -> (put, take): an operation is made once, for a graph that grows gets slower


def mover(dtype):
    if dtype not in movers:
        data, rows = tf.placeholder(dtype), tf.placeholder(tf.int64, [None])
        movers[dtype] = kept([data], tf.identity(data)), kept([data, rows], tf.gather(data, rows))
    return movers[dtype]


def put(array):
    return mover(array.dtype.name)[0](array)


def take(data, rows):
    return mover(data._dtype.as_numpy_dtype.__name__)[1](data, rows)


def wait(value):
    pass  # a session's run returns when what it was asked for has been computed


def fetch(value):
    return value  # a run's results are NumPy's


def peak_memory():
    return None
