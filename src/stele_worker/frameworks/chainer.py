"""Chainer: NumPy computes on a CPU, CuPy on CUDA."""

import copy
import itertools
import os
import weakref
from functools import partial

import chainer
import numpy
from chainer.graph_optimizations.static_graph import static_graph

from stele_worker import modes, ranks

MODES = ("define-by-run", "as-shipped", "ideep", "static-graph")
PARALLEL = "sharded"  # the batch over copies of the network in one process, as ParallelUpdater does it
STATISTICS = "own"  # MultiNodeBatchNormalization of ChainerMN would exchange them; it needs MPI
host = chainer.get_device("@numpy")
device = host
mode = "define-by-run"
replicas = weakref.WeakKeyDictionary()  # network -> its copies for the other devices
static_chains = []  # whose computations were recorded as a schedule

KINDS = {"W": "weight", "b": "bias", "gamma": "weight", "beta": "bias"}  # Chainer's name -> neutral name


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings.

    NumPy's BLAS read its number of threads from the environment at import, so ``threads`` has no effect here.
    """
    global device, mode
    mode = settings["mode"]
    if settings["precision"] not in ("fp32", "default"):
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
        "mkl_kernels": os.environ.get("MKL_DEBUG_CPU_TYPE"),
    }


def in_force():
    """Return whether Chainer computes with iDeep, and how many schedules static_graph recorded."""
    schedules = sum(
        len(found) for chain in static_chains for found in chain.schedule_manager.schedules.values()
    )
    done = {"ideep": int(chainer.config.use_ideep != "never"), "schedules": schedules}
    obeyed = bool(done["ideep"]) == (mode == "ideep") and (schedules > 0) == (mode == "static-graph")
    return modes.check(mode, done, obeyed)


def on_device(net):
    """Move a network's parameters to the device; return the network, whose forward the mode may make static."""
    net.to_device(device)
    if mode == "static-graph":
        net.forward = partial(compiled(type(net).forward), net)
    return net


def compiled(function):
    """Return function(chain, x) as the mode executes it."""
    if mode != "static-graph":
        return function
    static, trained = static_graph(function), []

    def run(chain, x):
        if chainer.config.schedule_func is not None:  # a static chain may not contain another one
            return function(chain, x)
        if chainer.config.train and not trained:
            trained.append(record(static, chain, x))
        value = static(chain, x)
        if chain not in static_chains:
            static_chains.append(chain)
        return value

    return run


def record(static, chain, x):
    """Record the schedule of a training step. This computes it twice, so restore what batch normalisation counted."""
    counted = [array for link in chain.links() for array in persistent(link)]
    before = [array.copy() for array in counted]
    static(chain, x)
    chain.schedule_manager.end_forward()
    for array, value in zip(counted, before):
        array[...] = value


def persistent(link):
    """Return the arrays of a link that are no parameters: the running statistics."""
    values = [getattr(link, name) for name in getattr(link, "_persistent", ())]
    return [value for value in values if isinstance(value, device.xp.ndarray)]


def recomputed(function, x):
    """Return function(x), which the backward pass computes again. A static graph refuses that, so it keeps all."""
    again = chainer.config.train and chainer.config.schedule_func is None
    return chainer.functions.forget(function, x) if again else function(x)


def parameters(net):
    """Return a network's parameters by neutral name: conv1.weight is Chainer's /conv1/W, and factor is /factor."""
    paths = [(path.strip("/").split("/"), parameter) for path, parameter in net.namedparams()]
    return {".".join(links + [KINDS.get(kind, kind)]): parameter for (*links, kind), parameter in paths}


def load(net, weights):
    """Set the parameters and running statistics of a network; return the network."""
    for name, array in stored(net).items():
        array[...] = weights[name]
    return on_device(net)


def stored(net):
    """Return a network's parameters and running statistics by neutral name."""
    found = {name: parameter.array for name, parameter in parameters(net).items()}
    for path, link in net.namedlinks():
        if isinstance(link, chainer.links.BatchNormalization):
            name = path.strip("/").replace("/", ".")
            found[name + ".running_mean"], found[name + ".running_var"] = link.avg_mean, link.avg_var
    return found


def neutral(name, array):
    return array  # Chainer has the Task's layouts


def gradients_of(net):
    """Return the gradient of each parameter, by neutral name."""
    return {name: parameter.grad for name, parameter in parameters(net).items()}


def gradients(recipe, net, task):
    """Return run(x, y) -> (loss, {parameter: gradient})."""
    named = getattr(recipe, "gradients_of", gradients_of)

    def run(x, y):
        nets = networks(net)
        value = differentiate(nets, recipe.loss, x, y)
        add_gradients(nets)
        return value, named(net)

    return run


def sgd(net, task):
    """Return SGD. Chainer has the learning rate inside the velocity, which is equivalent at a constant rate."""
    optimiser = chainer.optimizers.MomentumSGD(lr=task.learning_rate, momentum=task.momentum)
    optimiser.setup(net)
    return optimiser


def adam(net, task):
    """Return an optimiser, and what it has to call before each update.

    Chainer adds epsilon before it corrects the second moment, the tasks add it after: so correct epsilon by the same
    factor.
    """
    optimiser = chainer.optimizers.Adam(
        alpha=task.learning_rate, beta1=task.beta1, beta2=task.beta2, eps=task.epsilon, eta=1.0, weight_decay_rate=0,
        amsgrad=False, adabound=False,
    )  # fmt: skip
    optimiser.setup(net)

    def correct_epsilon():
        optimiser.eps = task.epsilon * (1 - task.beta2 ** (optimiser.t + 1)) ** 0.5

    return optimiser, correct_epsilon


def make_training_step(net, optimiser, loss, before_update=lambda: None):
    """Return step(x, y) -> loss, which updates the parameters on each device."""
    communication = Communication(net)

    def step(x, y):
        nets = networks(net)
        value = differentiate(nets, loss, x, y)
        if communication.exchanges:
            add_gradients(nets)
        before_update()
        optimiser.update()
        if communication.exchanges:
            copy_parameters(nets)
        return value

    if ranks.count > 1:
        step.communication = lambda: communication
    return step


class Communication:
    """The sum of the gradients and the copies of the parameters. A step can leave both out; both can be done alone.

    ``exchanges`` says whether the next step has them. Either way only the first network has an optimiser.
    """

    def __init__(self, net):
        self.exchanges, self.net = True, net

    def alone(self):
        """Exchange as many numbers as a step does."""
        nets = networks(self.net)
        add_gradients(nets)
        copy_parameters(nets)

    def meet(self):
        """Return at once: one process begins for all devices."""


def differentiate(nets, loss, x, y):
    """Give each network its part of the gradients of the mean loss of a batch; return this loss.

    ``nets`` has a network for each device. Each computes its part of the batch; one network computes all parts.
    """
    shares = list(zip(parts(x), parts(y)))
    for net in nets:
        net.cleargrads()
    values = [loss(net, *share) for net, share in zip(itertools.cycle(nets), shares)]
    for value in values:
        value.grad = value.xp.full_like(value.array, 1 / len(shares))
        value.backward()
    return sum(value.array for value in values) / len(shares)


def add_gradients(nets):
    """Give the first network the sum of the gradients of all."""
    for replica in nets[1:]:
        nets[0].addgrads(replica)


def copy_parameters(nets):
    """Give each network the parameters of the first one."""
    for replica in nets[1:]:
        replica.copyparams(nets[0])


def networks(net):
    """Return a network and its copies, one network for each device."""
    if net not in replicas:
        replicas[net] = [copy.deepcopy(net) for _ in range(1, ranks.count)]
    return [net] + replicas[net]


def parts(batch):
    """Return the part of a batch of each device; or its shards, if one device is the reference for several."""
    return batch if isinstance(batch, list) else divided(batch, ranks.shards)


def divided(batch, count):
    return [batch] if count == 1 else device.xp.split(batch, ranks.equal_shares(len(batch), count))


def inference_step(recipe, net, task):
    """Return step(x) -> logits or features."""
    return inference(net, recipe.predict)


def inference(net, predict):
    """Return step(x) -> predict(net, x) as an array, without gradients."""
    compute = compiled(predict)

    def step(x):
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            outputs = [compute(net, part).array for part in parts(x)]
        return outputs[0] if len(outputs) == 1 else device.xp.concatenate(outputs)

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
    batch = data[put(rows)]
    return batch if ranks.count == 1 else divided(batch, ranks.count)  # a list: the part of each device


def wait(value):
    if device.xp is not numpy:
        device.device.synchronize()


def fetch(value):
    return host.send(value)


def copies(value):
    """Return the part of a batch that each device has, as NumPy arrays."""
    return [fetch(part) for part in value] if isinstance(value, list) else [fetch(value)]


def on_each_device(read, net):
    """Return read(net) of each device."""
    return [read(one) for one in networks(net)]


def peak_memory():
    return None if device.xp is numpy else device.xp.get_default_memory_pool().total_bytes()
