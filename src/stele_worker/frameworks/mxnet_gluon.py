"""MXNet 1 with its imperative API, Gluon. MXNet calls a device a context."""

import json
import os
import tempfile

import mxnet as mx
import numpy
from mxnet import autograd, gluon, profiler

from stele_worker import modes

# "hybridize" plans the memory once, for one shape; "onednn" fuses the operations of the inference
MODES = ("hybridize", "as-shipped", "imperative", "onednn")
device = mx.cpu()
mode = "hybridize"
blocks = []  # that compute as a graph, unless the mode is imperative


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings.

    OpenMP read its number of threads from the environment at the import of MXNet, so ``threads`` has no effect
    here.
    """
    global device, mode
    if settings["precision"] != "fp32":
        reason = "MXNet {} is supported in precision 'fp32' only, not {!r}: use precision 'fp32'"
        raise RuntimeError(reason.format(mx.__version__, settings["precision"]))
    if settings["device"] == "cuda" and not mx.context.num_gpus():
        advice = "Install a CUDA build, such as mxnet-cu112, on a machine with a GPU, or use device 'cpu'."
        raise RuntimeError("MXNet {} found no CUDA device. {}".format(mx.__version__, advice))
    device = mx.gpu(0) if settings["device"] == "cuda" else mx.cpu()
    mode = settings["mode"]
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
    static = mode != "as-shipped"
    return {"static_alloc": static, "static_shape": static}


def graph(block):
    """Make a block compute as the mode says, with its parameters on the device; return the block."""
    block.initialize(mx.init.Zero(), ctx=device)
    block.hybridize(active=mode != "imperative", **options())
    blocks.append(block)
    return block


def in_force():
    """Return whether the blocks computed as graphs."""
    done = {"hybridized": all(block._active for block in blocks)}
    return modes.check(mode, done, done["hybridized"] == (mode != "imperative"))


def cross_entropy():
    """Return the loss of each sample."""
    return graph(gluon.loss.SoftmaxCrossEntropyLoss(axis=-1, sparse_label=True, from_logits=False))


def gradients(recipe, net, task):
    """Return run(x, y) -> (loss, {parameter: gradient})."""
    losses = cross_entropy()
    trainable = {name: weight for name, weight in recipe.parameters(net).items() if weight.grad_req != "null"}

    def run(x, y):
        with autograd.record(train_mode=True):
            loss = losses(net(x), y).mean()
        loss.backward()
        return loss, {name: weight.grad() for name, weight in trainable.items()}

    return run


def inference_step(recipe, net, task):
    """Return step(x) -> logits or features."""
    block, ready = recipe.body(net), []

    def step(x):
        with autograd.predict_mode():
            if mode == "onednn" and not ready:
                block.optimize_for(x, backend="MKLDNN", **options())
                ready.append(True)
            return block(x)

    return step


def profile(run):
    """Return {operation: (seconds, calls)} during run()."""
    with tempfile.TemporaryDirectory() as folder:
        profiler.set_config(
            profile_all=True, aggregate_stats=True, filename=os.path.join(folder, "profile.json")
        )
        profiler.set_state("run")
        run()
        profiler.set_state("stop")
        table = json.loads(profiler.dumps(reset=True, format="json"))["Time"]
    operators = table.get("operator", {}).items()
    return {name: (1e-3 * numbers["Total"], numbers["Count"]) for name, numbers in operators}


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
