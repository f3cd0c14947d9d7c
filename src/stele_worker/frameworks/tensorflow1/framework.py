"""TensorFlow 1: one graph, one session, and arrays that stay in the session as tensor handles.

A handle names a tensor that one run of the session left on the device. A later run takes it in place of a
placeholder, so that no array is copied to feed a step. In mode "eager" there is neither a graph nor a session.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow reads the level of warnings at import

import tensorflow as tf

from stele_worker.frameworks import base


class Framework(base.Framework):
    MODES = ("session", "eager")

    def __init__(self, name):
        super().__init__(name)
        self.mode = "session"
        self.session = None
        self.copy_functions = {}  # dtype -> (put, take): created once, because a growing graph gets slower

    def configure(self, settings):
        self.mode = settings["mode"]
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
        if self.mode == "eager":
            tf.enable_eager_execution(config)
        # determinism needs no setting: the CPU kernels that the recipes use have a fixed order of summation
        tf.set_random_seed(settings["seed"])
        self.session = tf.Session(config=config)

    def versions(self):
        return {"tensorflow": tf.__version__, "cuda": None, "cudnn": None}

    def flags(self):
        config = self.session._config
        return {
            "device": ", ".join(device.name for device in self.session.list_devices() if device.device_type == "CPU"),
            "threads": config.intra_op_parallelism_threads,
            "interop_threads": config.inter_op_parallelism_threads,
            "xla": config.graph_options.optimizer_options.global_jit_level > 0,
            "seed": tf.get_default_graph().seed,
        }

    def in_force(self):
        """Return whether TensorFlow executes eagerly."""
        done = {"eager": int(tf.executing_eagerly())}
        return self.check_mode(done, tf.executing_eagerly() == (self.mode == "eager"))

    def make_handle_function(self, inputs, tensor):
        """Return f(*handles or arrays) -> a handle of the tensor's value."""
        return self.session.make_callable(tf.get_session_handle(tensor), feed_list=inputs)

    def get_copy_functions(self, dtype):
        if dtype not in self.copy_functions:
            data, rows = tf.placeholder(dtype), tf.placeholder(tf.int64, [None])
            self.copy_functions[dtype] = (
                self.make_handle_function([data], tf.identity(data)),
                self.make_handle_function([data, rows], tf.gather(data, rows)),
            )
        return self.copy_functions[dtype]

    def put(self, array):
        if self.mode == "eager":
            return tf.constant(array)
        return self.get_copy_functions(array.dtype.name)[0](array)

    def take(self, data, rows):
        if self.mode == "eager":
            return tf.gather(data, rows)
        return self.get_copy_functions(data._dtype.as_numpy_dtype.__name__)[1](data, rows)

    def fetch(self, value):
        return value.numpy() if hasattr(value, "numpy") else value  # a run returns NumPy arrays
