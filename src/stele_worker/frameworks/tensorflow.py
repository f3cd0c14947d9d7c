"""TensorFlow 2."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow reads the level of warnings at import

import tensorflow as tf
from tensorflow.python.framework.config import is_op_determinism_enabled  # the public API can only enable it

device = "cpu"


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings."""
    global device
    device = settings["device"]
    gpus = tf.config.list_physical_devices("GPU")
    if device == "cuda" and not gpus:
        advice = "Install tensorflow[and-cuda] on a machine with a GPU, or use device 'cpu'."
        raise RuntimeError("TensorFlow {} found no CUDA device. {}".format(tf.__version__, advice))
    tf.config.set_visible_devices(gpus[:1] if device == "cuda" else [], "GPU")
    for gpu in tf.config.get_visible_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    tf.config.threading.set_intra_op_parallelism_threads(settings["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(settings["threads"])
    tf.config.experimental.enable_tensor_float_32_execution(settings["precision"] == "tf32")
    # TensorFlow reads it at the first convolution
    os.environ["TF_CUDNN_USE_AUTOTUNE"] = "1" if settings["autotune"] else "0"
    tf.random.set_seed(settings["seed"])
    if settings["deterministic"]:
        tf.config.experimental.enable_op_determinism()


def versions():
    build = tf.sysconfig.get_build_info()
    return {
        "tensorflow": tf.__version__,
        "cuda": build.get("cuda_version"),
        "cudnn": build.get("cudnn_version"),
    }


def flags():
    gpus = tf.config.get_visible_devices("GPU")
    return {
        "device": tf.config.experimental.get_device_details(gpus[0])["device_name"] if gpus else "cpu",
        "threads": tf.config.threading.get_intra_op_parallelism_threads(),
        "interop_threads": tf.config.threading.get_inter_op_parallelism_threads(),
        "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
        "cudnn_autotune": os.environ["TF_CUDNN_USE_AUTOTUNE"] == "1",
        "deterministic": is_op_determinism_enabled(),
        "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
        "memory_growth": [tf.config.experimental.get_memory_growth(gpu) for gpu in gpus],
    }


def put(array):
    if array.dtype == "int32":  # labels and tokens: TensorFlow keeps int32 in host memory
        array = array.astype("int64")
    return tf.constant(array)


def take(data, rows):
    return tf.gather(data, rows)


def wait(value):
    if device == "cuda":
        tf.test.experimental.sync_devices()  # on a CPU a call returns after its computation


def fetch(value):
    return tf.cast(value, tf.float32).numpy()


def peak_memory():
    return tf.config.experimental.get_memory_info("GPU:0")["peak"] if device == "cuda" else None
