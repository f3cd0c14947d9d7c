"""Chainer around any Task: NumPy computes on a CPU, CuPy on CUDA."""

import os

import chainer
import numpy

device = chainer.get_device("@numpy")

KINDS = {"W": "weight", "b": "bias", "gamma": "weight", "beta": "bias"}  # Chainer's names of parameters


def configure(settings):
    """See ``stele_worker.frameworks``; settings as in ``stele_worker.protocol``.

    NumPy's BLAS read its number of threads from the environment when it was imported: ``threads`` has
    nothing to set here.
    """
    global device
    if settings["precision"] != "fp32":
        reason = "Chainer {} is set up for precision 'fp32' only, not {!r}: ask for 'fp32'"
        raise RuntimeError(reason.format(chainer.__version__, settings["precision"]))
    if settings["device"] == "cuda" and not chainer.backends.cuda.available:
        advice = "Install cupy 7 beside a GPU, or ask for device cpu."
        raise RuntimeError("Chainer {} sees no CUDA device. {}".format(chainer.__version__, advice))
    device = chainer.get_device("@cupy:0" if settings["device"] == "cuda" else "@numpy")
    device.use()
    device.xp.random.seed(settings["seed"])
    chainer.global_config.dtype = numpy.dtype("float32")
    chainer.global_config.autotune = settings["autotune"]
    chainer.global_config.cudnn_deterministic = settings["deterministic"]
    # Chainer's performance guide: off, once code is tested; a sixth of the GRU's training step on a CPU
    chainer.global_config.type_check = not settings["tuned"]


def versions():
    cupy = chainer.backends.cuda.cupy if chainer.backends.cuda.available else None
    return {
        "chainer": chainer.__version__,
        "numpy": numpy.__version__,
        "cupy": cupy.__version__ if cupy else None,
        "cuda": cupy.cuda.runtime.runtimeGetVersion() if cupy else None,
    }


def flags():
    return {
        "device": str(device),
        "threads": os.environ.get("OPENBLAS_NUM_THREADS"),
        "dtype": str(chainer.config.dtype),
        "cudnn_autotune": chainer.config.autotune,
        "deterministic": chainer.config.cudnn_deterministic,
        "use_cudnn": chainer.config.use_cudnn,
        "use_ideep": chainer.config.use_ideep,
        "type_check": chainer.config.type_check,
    }


def on_device(net):
    """A network, its parameters moved to the device."""
    net.to_device(device)
    return net


def parameters(net):
    """A network's parameters by neutral name: conv1.weight is Chainer's /conv1/W."""
    paths = [(path.strip("/").split("/"), parameter) for path, parameter in net.namedparams()]
    return {".".join(links + [KINDS[kind]]): parameter for (*links, kind), parameter in paths}


def outputs(net, names, step):
    """run(x) -> {layer: output} of the links ``names``, such as layer1.0, while ``step`` runs; images channels last."""
    links = {path.strip("/").replace("/", "."): link for path, link in net.namedlinks()}
    wanted = {id(links[name]): name for name in names}

    def run(x):
        seen = {}
        with Recorder(wanted, seen):
            step(x)
        return seen

    return run


class Recorder(chainer.LinkHook):
    def __init__(self, wanted, seen):
        self.wanted, self.seen = wanted, seen

    def forward_postprocess(self, call):
        if id(call.link) in self.wanted:
            array = call.out.array
            self.seen[self.wanted[id(call.link)]] = array.transpose(0, 2, 3, 1) if array.ndim == 4 else array


def put(array):
    return device.send(array)


def take(data, rows):
    return data[device.send(rows)]


def wait(value):
    if device.xp is not numpy:
        device.device.synchronize()


def fetch(value):
    return chainer.get_device("@numpy").send(value)


def peak_memory():
    return None if device.xp is numpy else device.xp.get_default_memory_pool().total_bytes()
