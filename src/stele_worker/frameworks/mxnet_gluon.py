"""MXNet 1 around any Task, for the imperative front end Gluon. MXNet calls a device a context."""

import os

import mxnet as mx
import numpy

device = mx.cpu()
tuned = True


def configure(settings):
    """See ``stele_worker.frameworks``; settings as in ``stele_worker.protocol``.

    OpenMP read its number of threads from the environment when MXNet was imported, so ``threads`` has
    nothing to set here.
    """
    global device, tuned
    if settings["precision"] != "fp32":
        reason = "MXNet {} is set up for precision 'fp32' only, not {!r}: ask for 'fp32'"
        raise RuntimeError(reason.format(mx.__version__, settings["precision"]))
    if settings["device"] == "cuda" and not mx.context.num_gpus():
        advice = "Install a build with CUDA, such as mxnet-cu112, beside a GPU, or ask for device cpu."
        raise RuntimeError("MXNet {} sees no CUDA device. {}".format(mx.__version__, advice))
    device = mx.gpu(0) if settings["device"] == "cuda" else mx.cpu()
    tuned = settings["tuned"]
    # read whenever an operator is made; 2 is the search without a limit to the workspace
    os.environ["MXNET_CUDNN_AUTOTUNE_DEFAULT"] = "2" if settings["autotune"] else "0"
    os.environ["MXNET_ENFORCE_DETERMINISM"] = "1" if settings["deterministic"] else "0"
    mx.random.seed(settings["seed"])


def versions():
    features = mx.runtime.Features()
    return {
        "mxnet": mx.__version__,
        "numpy": numpy.__version__,
        "onednn": features.is_enabled("MKLDNN"),
        "cuda": features.is_enabled("CUDA"),
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
    """How a block is made a graph: as documented for speed, its memory planned once, or as by default."""
    return {"static_alloc": tuned, "static_shape": tuned}


def graph(block):
    """A block, to be computed as a graph, its parameters on the device."""
    block.initialize(mx.init.Zero(), ctx=device)
    block.hybridize(**options())
    return block


def put(array):
    return mx.nd.array(array, ctx=device, dtype=array.dtype)  # without a dtype all become float32


def take(data, rows):
    return mx.nd.take(data, put(rows))


def wait(value):
    mx.nd.waitall()  # a loss is ready before the parameters have moved


def fetch(value):
    return value.asnumpy()


def peak_memory():
    return None  # MXNet tells what is free, not what was most
