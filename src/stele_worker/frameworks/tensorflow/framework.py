"""TensorFlow 2."""

import os
import pathlib
import re
import tempfile
from functools import partial

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow reads the level of warnings at import

import numpy
import tensorflow as tf
from tensorflow.python.framework.config import is_op_determinism_enabled  # the public API can only enable it

from stele_worker.frameworks import base
from stele_worker.profiles import self_times
from stele_worker.ranks import ranks


def operations(plane, line):
    """Yield (operation, start, duration) in nanoseconds of the events that are operations of TensorFlow or XLA."""
    names = {key: value.name for key, value in plane.event_metadata.items()}
    stats = {key: value.name for key, value in plane.stat_metadata.items()}
    for event in line.events:
        name = names[event.metadata_id]
        kind = name.rpartition(":")[2]  # layer/Conv2D:Conv2D
        if any(stats[stat.metadata_id] == "hlo_op" for stat in event.stats):
            kind = re.sub(r"[.\d]+$", "", name)  # XLA: fusion.12
        elif kind == name or "::" in name or " " in name or kind.startswith("__inference"):
            continue
        yield kind, line.timestamp_ns + 1e-3 * event.offset_ps, 1e-3 * event.duration_ps


@tf.function
def take_pixels(images, table, layout):
    rows, columns, cut_rows, cut_columns = table
    images = tf.gather(tf.gather(images, rows, batch_dims=1), columns, axis=2, batch_dims=1)
    if cut_rows is None:
        return images
    return tf.where((cut_rows[:, :, None] & cut_columns[:, None, :])[..., None], 0.0, images)


class Framework(base.Framework):
    # "graph" compiles with XLA where the recipe is faster with it; "function" never does, "xla" always
    MODES = ("graph", "function", "eager", "xla", "frozen")
    PARALLEL = "sharded"  # MirroredStrategy: each device has a copy of the variables and a part of the batch
    HAS_PROFILER = True
    STATISTICS = "own"

    def __init__(self, name):
        super().__init__(name)
        self.device = "cpu"
        self.mode = "graph"
        self.functions = []  # that tf.function traces
        self.strategy = None  # of several devices

    def configure(self, settings):
        self.device, self.mode = settings["device"], settings["mode"]
        gpus = tf.config.list_physical_devices("GPU")
        if self.device == "cuda" and not gpus:
            advice = "Install tensorflow[and-cuda] on a machine with a GPU, or use device 'cpu'."
            raise RuntimeError("TensorFlow {} found no CUDA device. {}".format(tf.__version__, advice))
        if self.device == "cuda" and len(gpus) < ranks.count:
            message = "TensorFlow {} found {} CUDA devices; --devices {} needs as many"
            raise RuntimeError(message.format(tf.__version__, len(gpus), ranks.count))
        tf.config.set_visible_devices(gpus[: ranks.count] if self.device == "cuda" else [], "GPU")
        for gpu in tf.config.get_visible_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, True)
        threads = settings["threads"] * ranks.count  # all devices of the processor share these threads
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        if settings["precision"] != "default":
            tf.config.experimental.enable_tensor_float_32_execution(settings["precision"] == "tf32")
        if settings["tuned"] or settings["deterministic"]:  # TensorFlow reads it at the first convolution
            os.environ["TF_CUDNN_USE_AUTOTUNE"] = "1" if settings["autotune"] else "0"
        tf.random.set_seed(settings["seed"])
        # XLA is deterministic on a CPU, but refuses the gradient of max pooling if determinism is required
        if settings["deterministic"] and not (self.mode == "xla" and self.device == "cpu"):
            tf.config.experimental.enable_op_determinism()
        if ranks.count > 1:
            self.mirror_variables()

    def mirror_variables(self):
        """Give each device a copy of the variables that are created from now on."""
        if self.device == "cpu":
            [processor] = tf.config.list_physical_devices("CPU")
            shares = [tf.config.LogicalDeviceConfiguration()] * ranks.count
            tf.config.set_logical_device_configuration(processor, shares)
        replicas = tf.config.list_logical_devices("GPU" if self.device == "cuda" else "CPU")
        self.strategy = tf.distribute.MirroredStrategy([replica.name for replica in replicas])
        tf.distribute.experimental_set_strategy(self.strategy)

    def versions(self):
        build = tf.sysconfig.get_build_info()
        return {
            "tensorflow": tf.__version__,
            "cuda": build.get("cuda_version"),
            "cudnn": build.get("cudnn_version"),
        }

    def flags(self):
        gpus = tf.config.get_visible_devices("GPU")
        return {
            "device": tf.config.experimental.get_device_details(gpus[0])["device_name"] if gpus else "cpu",
            "threads": tf.config.threading.get_intra_op_parallelism_threads(),
            "interop_threads": tf.config.threading.get_inter_op_parallelism_threads(),
            "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
            "TF_CUDNN_USE_AUTOTUNE": os.environ.get("TF_CUDNN_USE_AUTOTUNE", "default"),  # TensorFlow does not say
            "deterministic": is_op_determinism_enabled(),
            "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
            "memory_growth": [tf.config.experimental.get_memory_growth(gpu) for gpu in gpus],
        }

    def compiled(self, function=None, xla=False, autograph=False):
        """Return a function as the mode executes it. ``xla``: whether it is faster with XLA."""
        if function is None:
            return partial(self.compiled, xla=xla)
        if self.mode == "eager":
            return function
        # XLA compiles for one device: of several it compiles what each computes alone
        jit = self.strategy is None and self.uses_jit(xla)
        self.functions.append(tf.function(function, autograph=autograph, jit_compile=jit))
        return self.functions[-1]

    def uses_jit(self, xla):
        """Return whether XLA compiles a function in this mode, if ``xla`` says whether it is faster with XLA."""
        return self.mode == "xla" or (xla and self.mode not in ("function", "eager"))

    def in_force(self):
        """Return how often tf.function traced a step; 0 in eager mode."""
        done = {"traces": sum(function.experimental_get_tracing_count() for function in self.functions)}
        return self.check_mode(done, self.mode == "eager" or done["traces"] > 0)

    def uses_cudnn(self):
        """Return whether recurrent layers use cuDNN, which XLA cannot compile."""
        return self.device == "cuda" and self.mode != "xla"

    def local(self, value):
        """Return the copies of a value on the devices, or the only one."""
        return (value,) if self.strategy is None else self.strategy.experimental_local_results(value)

    def profile(self, run):
        """Return {operation: (seconds, calls)} during run()."""
        from tensorflow.tsl.profiler.protobuf import xplane_pb2

        with tempfile.TemporaryDirectory() as folder:
            tf.profiler.experimental.start(folder)
            try:
                run()
            finally:
                tf.profiler.experimental.stop()
            paths = pathlib.Path(folder).rglob("*.xplane.pb")
            files = [xplane_pb2.XSpace.FromString(path.read_bytes()) for path in paths]
        return self_times(operations(plane, line) for file in files for plane in file.planes for line in plane.lines)

    def put(self, array):
        if array.dtype.names:  # BFLOAT16 of stele_worker.models.inputs
            return tf.bitcast(tf.constant(array.view("<u2")), tf.bfloat16)
        if array.dtype == "int32":  # labels and tokens: TensorFlow keeps int32 in host memory
            array = array.astype("int64")
        return tf.constant(array) if self.strategy is None else self.distributed(lambda number: tf.constant(array))

    def distributed(self, make):
        """Return the values make(number), each on the device of this number, as one value of all devices."""

        def value(context):
            number = context.replica_id_in_sync_group
            with tf.device(self.strategy.extended.worker_devices[number]):
                return make(number)

        return self.strategy.experimental_distribute_values_from_function(value)

    def take(self, data, rows):
        if self.strategy is None:
            return tf.gather(data, rows)
        copies, shares = self.local(data), numpy.split(rows, ranks.equal_shares(len(rows), ranks.count))
        return self.distributed(lambda number: tf.gather(copies[number], shares[number]))

    def take_pixels(self, images, table, layout):
        return take_pixels(images, table, layout)

    def draw_integers(self, samples, limit, seed):
        return tf.random.stateless_uniform((samples, 1), (seed, 0), maxval=limit, dtype=tf.int64)

    def draw_weight(self, shape, seed):
        """Return what Keras' layers start from, as an array in the Task's layout."""
        # Glorot's; tf.initializers are those of Keras, which may have another backend
        limit = (6 / ((shape[0] + shape[1]) * int(numpy.prod(shape[2:])))) ** 0.5
        return tf.random.stateless_uniform(shape, (seed, 0), -limit, limit).numpy()

    def wait(self, value):
        if self.device == "cuda":
            tf.test.experimental.sync_devices()  # on a CPU a call returns after its computation

    def fetch(self, value):
        if isinstance(value, tf.distribute.DistributedValues) and not isinstance(value, tf.Variable):
            return numpy.concatenate(self.copies(value))  # parts of a batch
        return tf.cast(value, tf.float32).numpy()

    def copies(self, value):
        """Return the part of a value, or the copy, that each device has, as NumPy arrays."""
        return [tf.cast(one, tf.float32).numpy() for one in self.local(value)]

    def forget_peak_memory(self):
        for number in range(ranks.count if self.device == "cuda" else 0):
            tf.config.experimental.reset_memory_stats("GPU:%d" % number)

    def peak_memory(self):
        """Return the bytes of the device that used most; None on a CPU."""
        if self.device == "cpu":
            return None
        return max(tf.config.experimental.get_memory_info("GPU:%d" % number)["peak"] for number in range(ranks.count))
