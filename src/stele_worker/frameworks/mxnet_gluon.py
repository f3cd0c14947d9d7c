"""MXNet 1 with its imperative API, Gluon. MXNet calls a device a context."""

import json
import os
import tempfile

import mxnet as mx
import numpy
from mxnet import autograd, gluon, profiler

from stele_worker import modes, ranks

# "hybridize" plans the memory once, for one shape; "onednn" fuses the operations of the inference
MODES = ("hybridize", "as-shipped", "imperative", "onednn")
PARALLEL = (
    "sharded"  # the batch over the contexts of one process; the kvstore of the Trainer adds their gradients
)
STATISTICS = "own"  # SyncBatchNorm of gluon.contrib would exchange them
device = mx.cpu()
contexts = [device]  # of --devices; the first is ``device``
mode = "hybridize"
# parts of MXNet's names of parameters -> parts of the neutral names
NAMES = {"gamma": "weight", "beta": "bias", "l0_i2h": "input", "l0_h2h": "hidden"}
blocks = []  # that compute as a graph, unless the mode is imperative


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings.

    OpenMP read its number of threads from the environment at the import of MXNet, so ``threads`` has no effect
    here.
    """
    global device, contexts, mode
    if settings["precision"] not in ("fp32", "default"):
        reason = "MXNet {} is supported in precision 'fp32' only, not {!r}: use precision 'fp32'"
        raise RuntimeError(reason.format(mx.__version__, settings["precision"]))
    if settings["device"] == "cuda" and not mx.context.num_gpus():
        advice = "Install a CUDA build, such as mxnet-cu112, on a machine with a GPU, or use device 'cpu'."
        raise RuntimeError("MXNet {} found no CUDA device. {}".format(mx.__version__, advice))
    if settings["device"] == "cuda" and mx.context.num_gpus() < ranks.count:
        message = "MXNet {} found {} CUDA devices; --devices {} needs as many"
        raise RuntimeError(message.format(mx.__version__, mx.context.num_gpus(), ranks.count))
    kind = mx.gpu if settings["device"] == "cuda" else mx.cpu
    contexts = [kind(number) for number in range(ranks.count)]
    device = contexts[0]
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
    """Make a block compute as the mode says, with its parameters on each device; return the block."""
    block.initialize(mx.init.Zero(), ctx=contexts)
    block.hybridize(active=mode != "imperative", **options())
    blocks.append(block)
    return block


def relu(F, x):
    """Return max(x, 0) in oneDNN's own layout of x. F.relu first copies x to a plain layout."""
    return F.Activation(x, act_type="relu")


def parameters(net):
    """Return parameters and running statistics by neutral name."""
    found = {}
    for name, parameter in net.collect_params().items():
        for part, neutral_part in NAMES.items():
            name = name.replace(part, neutral_part)
        found[name] = parameter
    return found


def load(net, weights):
    """Set the parameters of a network; return the network."""
    for name, parameter in parameters(net).items():
        parameter.set_data(put(weights[name]))
    return net


def stored(net):
    """Return the arrays of a network by neutral name."""
    return {name: parameter.data() for name, parameter in parameters(net).items()}


def neutral(name, array):
    return array  # MXNet has the Task's layouts


def in_force():
    """Return whether the blocks computed as graphs."""
    done = {"hybridized": all(block._active for block in blocks)}
    return modes.check(mode, done, done["hybridized"] == (mode != "imperative"))


def cross_entropy():
    """Return the loss of each sample."""
    return graph(gluon.loss.SoftmaxCrossEntropyLoss(axis=-1, sparse_label=True, from_logits=False))


def binary_cross_entropy():
    """Return the loss of each sample: the mean over its labels, which are 0 or 1."""
    return graph(gluon.loss.SigmoidBinaryCrossEntropyLoss(from_sigmoid=False))


def squared_error():
    """Return the loss of each sample: the mean over its numbers."""
    return graph(gluon.loss.L2Loss(weight=2.0))  # Gluon takes half of the square


def gradients(recipe, net, task):
    """Return run(x, y) -> (loss, {parameter: gradient})."""
    losses = getattr(recipe, "LOSS", cross_entropy)()
    trainable = {name: weight for name, weight in recipe.parameters(net).items() if weight.grad_req != "null"}
    trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore=kvstore(), update_on_kvstore=False)

    def run(x, y):
        shares = list(zip(parts(x), parts(y)))
        with autograd.record(train_mode=True):
            means = [losses(net(x), y).mean() / len(shares) for x, y in shares]
        autograd.backward(means)
        trainer.allreduce_grads()
        return joined(means).sum(), {name: weight.grad(device) for name, weight in trainable.items()}

    return run


def kvstore():
    """Return what adds the gradients of several devices in a Trainer; None for one device."""
    return "device" if len(contexts) > 1 else None


def sgd(net, task):
    """Return a Trainer. MXNet has the learning rate inside the velocity, which is equivalent at a constant rate."""
    constants = {"learning_rate": task.learning_rate, "momentum": task.momentum, "wd": 0.0}
    return gluon.Trainer(net.collect_params(), "sgd", constants, kvstore=kvstore())


def adam(net, task):
    """Return a Trainer, and what it has to call before each update.

    MXNet adds epsilon before it corrects the second moment, the tasks add it after: so correct epsilon by the same
    factor.
    """
    constants = {"learning_rate": task.learning_rate, "beta1": task.beta1, "beta2": task.beta2, "wd": 0.0}
    trainer = gluon.Trainer(
        net.collect_params(), "adam", dict(constants, lazy_update=False), kvstore=kvstore()
    )

    def correct_epsilon():
        count = trainer.optimizer.num_update + 1
        trainer.optimizer.epsilon = task.epsilon * (1 - task.beta2**count) ** 0.5

    return trainer, correct_epsilon


def make_training_step(net, trainer, before_update=lambda: None, loss=cross_entropy):
    """Return step(x, y) -> loss, which updates the parameters on each device."""
    losses = loss()

    def step(x, y):
        with autograd.record(train_mode=True):
            values = [losses(net(x), y) for x, y in zip(parts(x), parts(y))]  # each (batch / parts,)
        autograd.backward(values)  # of the summed loss
        before_update()
        loss = joined(values)
        trainer.step(len(loss))  # adds the gradients of the devices, and divides by the batch
        return loss.mean()

    return step


def parts(batch):
    """Return the part of a batch on each device; or its shards, if one device is the reference for several.

    Each device computes all of a batch that ``take`` has not divided.
    """
    if isinstance(batch, list):
        return batch
    if ranks.shards == 1:
        return [batch.as_in_context(context) for context in contexts]
    return gluon.utils.split_data(batch, ranks.equal_shares(len(batch), ranks.shards))


def joined(values):
    """Return the values of the parts of a batch as one array on the first device."""
    if len(values) == 1:
        return values[0]
    return mx.nd.concat(*[value.as_in_context(device) for value in values], dim=0)


def inference_step(recipe, net, task):
    """Return step(x) -> logits or features."""
    block, ready = recipe.body(net), []

    def step(x):
        with autograd.predict_mode():
            if mode == "onednn" and not ready:
                block.optimize_for(x, backend="MKLDNN", **options())
                ready.append(True)
            return joined([block(part) for part in x]) if isinstance(x, list) else block(x)

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
    batch = mx.nd.take(data, put(rows))
    if len(contexts) == 1:
        return batch
    ranks.equal_shares(len(rows), len(contexts))
    return gluon.utils.split_and_load(batch, contexts)  # a list: the part of each device


def wait(value):
    mx.nd.waitall()  # a loss is ready before the parameters are updated


def fetch(value):
    return value.asnumpy()


def copies(value):
    """Return the part of a batch that each device has, as NumPy arrays."""
    return [fetch(part) for part in value] if isinstance(value, list) else [fetch(value)]


def on_each_device(read, net):
    """Return read(net) of each device. MXNet reads the copy of a parameter in the current context."""
    values = []
    for context in contexts:
        with context:
            values.append(read(net))
    return values


def peak_memory():
    return None  # MXNet reports free memory, not the peak
