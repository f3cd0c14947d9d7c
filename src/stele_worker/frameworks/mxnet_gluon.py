"""MXNet 1 with its imperative API, Gluon. MXNet calls a device a context."""

import os

import mxnet as mx
import numpy

device = mx.cpu()
tuned = True


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings.

    OpenMP read its number of threads from the environment at the import of MXNet, so ``threads`` has no effect
    here.
    """
    global device, tuned
    if settings["precision"] != "fp32":
        reason = "MXNet {} is supported in precision 'fp32' only, not {!r}: use precision 'fp32'"
        raise RuntimeError(reason.format(mx.__version__, settings["precision"]))
    if settings["device"] == "cuda" and not mx.context.num_gpus():
        advice = "Install a CUDA build, such as mxnet-cu112, on a machine with a GPU, or use device 'cpu'."
        raise RuntimeError("MXNet {} found no CUDA device. {}".format(mx.__version__, advice))
    device = mx.gpu(0) if settings["device"] == "cuda" else mx.cpu()
    tuned = settings.get("mode") != "as-shipped"
    # MXNet reads it for each new operator; 2 searches without a workspace limit
    os.environ["MXNET_CUDNN_AUTOTUNE_DEFAULT"] = "2" if settings["autotune"] else "0"
    os.environ["MXNET_ENFORCE_DETERMINISM"] = "1" if settings["deterministic"] else "0"
    mx.random.seed(settings["seed"])


def versions():
    features = mx.runtime.Features()
    return {
        "mxnet": mx.__version__,
        "numpy": numpy.__version__,
        "onednn": str(features.is_enabled("MKLDNN")),
        "cuda": str(features.is_enabled("CUDA")),
    }


def flags():
    return {
        "device": str(device),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "worker_threads": os.environ.get("MXNET_CPU_WORKER_NTHREADS", "default"),
        "cudnn_autotune": os.environ["MXNET_CUDNN_AUTOTUNE_DEFAULT"],
        "deterministic": os.environ["MXNET_ENFORCE_DETERMINISM"] == "1",
        "onednn_rnn": os.environ.get("MXNET_USE_MKLDNN_RNN", "default"),
        "hybridize": options(),
    }


def options():
    """Return the options of hybridize: static memory, which MXNet documents as fastest, or the defaults."""
    return {"static_alloc": tuned, "static_shape": tuned}


def graph(block):
    """Make a block compute as a graph, with its parameters on the device; return the block."""
    block.initialize(mx.init.Zero(), ctx=device)
    block.hybridize(**options())
    return block


def put(array):
    return mx.nd.array(array, ctx=device, dtype=array.dtype)  # without dtype, MXNet converts to float32


def take(data, rows):
    return mx.nd.take(data, put(rows))


def wait(value):
    mx.nd.waitall()  # a loss is ready before the parameters are updated


def fetch(value):
    return value.asnumpy()


def peak_memory():
    return None  # MXNet reports free memory, not the peak
