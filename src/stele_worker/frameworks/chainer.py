"""Chainer: NumPy computes on a CPU, CuPy on CUDA."""

import os

import chainer
import numpy

from stele_worker import modes

MODES = ("define-by-run", "as-shipped", "ideep")
host = chainer.get_device("@numpy")
device = host
mode = "define-by-run"

KINDS = {"W": "weight", "b": "bias", "gamma": "weight", "beta": "bias"}  # Chainer's name -> neutral name


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings.

    NumPy's BLAS read its number of threads from the environment at import, so ``threads`` has no effect here.
    """
    global device, mode
    mode = settings["mode"]
    if settings["precision"] != "fp32":
        reason = "Chainer {} is supported in precision 'fp32' only, not {!r}: use precision 'fp32'"
        raise RuntimeError(reason.format(chainer.__version__, settings["precision"]))
    if settings["device"] == "cuda" and not chainer.backends.cuda.available:
        advice = "Install cupy 7 on a machine with a GPU, or use device 'cpu'."
        raise RuntimeError("Chainer {} found no CUDA device. {}".format(chainer.__version__, advice))
    if mode == "ideep" and not chainer.backends.intel64.is_ideep_available():
        raise RuntimeError("Chainer found no iDeep: install ideep4py, which has wheels up to Python 3.7")
    on_cpu = "@intel64" if mode == "ideep" else "@numpy"
    device = chainer.get_device("@cupy:0" if settings["device"] == "cuda" else on_cpu)
    device.use()
    chainer.global_config.use_ideep = "auto" if mode == "ideep" else "never"
    device.xp.random.seed(settings["seed"])
    chainer.global_config.dtype = numpy.dtype("float32")
    chainer.global_config.autotune = settings["autotune"]
    chainer.global_config.cudnn_deterministic = settings["deterministic"]
    # Chainer's performance guide turns it off for tested code; it takes 1/6 of a GRU training step on a CPU
    chainer.global_config.type_check = mode == "as-shipped"


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


def in_force():
    """Return whether Chainer computes with iDeep."""
    done = {"ideep": int(chainer.config.use_ideep != "never")}
    return modes.check(mode, done, bool(done["ideep"]) == (mode == "ideep"))


def on_device(net):
    """Move a network's parameters to the device; return the network."""
    net.to_device(device)
    return net


def parameters(net):
    """Return a network's parameters by neutral name: conv1.weight is Chainer's /conv1/W."""
    paths = [(path.strip("/").split("/"), parameter) for path, parameter in net.namedparams()]
    return {".".join(links + [KINDS[kind]]): parameter for (*links, kind), parameter in paths}


def gradients_of(net):
    """Return the gradient of each parameter, by neutral name."""
    return {name: parameter.grad for name, parameter in parameters(net).items()}


def gradients(recipe, net, task):
    """Return run(x, y) -> (loss, {parameter: gradient})."""
    named = getattr(recipe, "gradients_of", gradients_of)

    def run(x, y):
        net.cleargrads()
        loss = recipe.loss(net, x, y)
        loss.backward()
        return loss.array, named(net)

    return run


def inference_step(recipe, net, task):
    """Return step(x) -> logits or features."""
    return inference(net, recipe.predict)


def inference(net, predict):
    """Return step(x) -> predict(net, x) as an array, without gradients."""

    def step(x):
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return predict(net, x).array

    return step


def outputs(net, names, step):
    """Return run(x) -> {layer: output}: outputs of the links ``names`` during ``step``, images channels last."""
    links = {path.strip("/").replace("/", "."): link for path, link in net.namedlinks()}
    names_by_link = {id(links[name]): name for name in names}

    def run(x):
        layer_outputs = {}
        with Recorder(names_by_link, layer_outputs):
            step(x)
        return layer_outputs

    return run


class Recorder(chainer.LinkHook):
    def __init__(self, names_by_link, layer_outputs):
        self.names_by_link, self.layer_outputs = names_by_link, layer_outputs

    def forward_postprocess(self, call):
        if id(call.link) in self.names_by_link:
            name, array = self.names_by_link[id(call.link)], call.out.array
            self.layer_outputs[name] = array.transpose(0, 2, 3, 1) if array.ndim == 4 else array


def put(array):
    return host.send(array) if mode == "ideep" else device.send(array)  # iDeep converts what it computes with


def take(data, rows):
    return data[put(rows)]


def wait(value):
    if device.xp is not numpy:
        device.device.synchronize()


def fetch(value):
    return host.send(value)


def peak_memory():
    return None if device.xp is numpy else device.xp.get_default_memory_pool().total_bytes()
