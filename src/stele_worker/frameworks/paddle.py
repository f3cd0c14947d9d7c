"""PaddlePaddle 3."""

import collections
import json
import os
import tempfile

from stele_worker import frameworks, modes, ranks

# read when OpenMP is loaded. Paddle sets it to 1 itself where it is not set, and its products have the threads of MKL.
# With both at 2, training of the GRU took 350 ms a step; with 1 and 2, 95 ms. A model of the user has those of the user
if frameworks.tuned:
    os.environ["OMP_NUM_THREADS"] = "1"

import numpy
import paddle
from paddle import inference

from stele_worker.profiles import self_times

PARALLEL = "processes"  # DataParallel, with ranks as paddle.distributed.launch starts them
STATISTICS = "own"  # SyncBatchNorm would exchange them; it needs GPUs
# inference uses Paddle Inference in the first mode; "as-shipped" runs it eagerly
MODES = ("dygraph", "as-shipped", "to-static", "cinn")
STATIC = {"to-static": None, "cinn": "CINN"}  # the backend of paddle.jit.to_static
# its name was mkldnn until Paddle 3.1
ONEDNN = "onednn" if hasattr(inference.Config, "enable_onednn") else "mkldnn"
device = "cpu"
threads = 1
mode = "dygraph"
functions = []  # that to_static converts


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings."""
    global device, threads, mode
    device, threads, mode = settings["device"], settings["threads"], settings["mode"]
    if mode == "cinn" and not paddle.is_compiled_with_cinn():  # to_static would ignore it without an error
        message = (
            "This wheel of Paddle {} does not contain CINN: install one that does, or use mode 'to-static'"
        )
        raise RuntimeError(message.format(paddle.__version__))
    if settings["precision"] not in ("fp32", "default"):
        reason = "Paddle is supported in precision 'fp32' only, not {!r}: use precision 'fp32'"
        raise RuntimeError(reason.format(settings["precision"]))
    if device == "cuda" and not paddle.device.is_compiled_with_cuda():
        advice = "Install paddlepaddle-gpu on a machine with a GPU, or use device 'cpu'."
        raise RuntimeError("Paddle {} was built without CUDA. {}".format(paddle.__version__, advice))
    if ranks.processes > 1:
        join_ranks()
    paddle.set_device(place())
    paddle.set_flags({"FLAGS_paddle_num_threads": threads})
    if device == "cuda" and (settings["tuned"] or settings["deterministic"]):
        paddle.set_flags({"FLAGS_cudnn_exhaustive_search": settings["autotune"]})
        paddle.set_flags({"FLAGS_cudnn_deterministic": settings["deterministic"]})
    if settings[
        "deterministic"
    ]:  # a program runs independent branches in any order, and dropout draws in that order
        paddle.set_flags({"FLAGS_new_executor_serial_run": True})
    paddle.seed(settings["seed"])


def place():
    """Return the name of the device of this process."""
    if device == "cpu":
        return "cpu"
    return "gpu:{}".format(ranks.number()) if ranks.processes > 1 else "gpu"


def join_ranks():
    """Connect this rank with the others: NCCL between GPUs, Gloo between processes."""
    first = int(os.environ["MASTER_PORT"])  # only the first rank opens its port
    addresses = ["127.0.0.1:{}".format(first + rank) for rank in range(ranks.processes)]
    os.environ.update(
        PADDLE_TRAINER_ID=str(ranks.number()),
        PADDLE_TRAINERS_NUM=str(ranks.processes),
        PADDLE_TRAINER_ENDPOINTS=",".join(addresses),
        PADDLE_CURRENT_ENDPOINT=addresses[ranks.number()],
        PADDLE_DISTRI_BACKEND="nccl" if device == "cuda" else "gloo",
        FLAGS_selected_gpus=str(ranks.number()),
    )
    paddle.set_device(place())
    paddle.distributed.init_parallel_env()


def versions():
    cuda = device == "cuda"
    return {
        "paddle": paddle.version.full_version,
        "cuda": paddle.version.cuda() if cuda else None,
        "cudnn": paddle.version.cudnn() if cuda else None,
    }


def flags():
    names = ["FLAGS_paddle_num_threads", "FLAGS_use_" + ONEDNN]  # eager mode ignores the second
    if device == "cuda":
        names += ["FLAGS_cudnn_exhaustive_search", "FLAGS_cudnn_deterministic"]
    active = {name[len("FLAGS_") :]: value for name, value in paddle.get_flags(names).items()}
    return dict(
        active,
        device=paddle.get_device(),
        threads=int(os.environ["MKL_NUM_THREADS"]),  # of matrix products and convolutions
        openmp_threads=int(os.environ["OMP_NUM_THREADS"]),
        inference_onednn=mode == "dygraph" and device == "cpu",
        mkl_kernels=os.environ.get("MKL_DEBUG_CPU_TYPE"),
    )


def compiled(function):
    """Return a function of tensors as the mode executes it. It is no lambda: to_static reads its source."""
    if mode not in STATIC:
        return function
    functions.append(paddle.jit.to_static(function, backend=STATIC[mode], full_graph=True))
    return functions[-1]


def in_force():
    """Return how many programs to_static made; 0 in dygraph."""
    done = {"programs": sum(len(function.program_cache) for function in functions)}
    return modes.check(mode, done, mode not in STATIC or done["programs"] > 0)


def gradients(recipe, net, task):
    """Return run(*inputs, y) -> (loss, {parameter: gradient})."""
    compute = compiled(on_all_devices(net, recipe.loss(net, task)))

    def run(*arrays):
        net.train()
        net.clear_gradients()
        loss = compute(*arrays)
        loss.backward()
        # Paddle also lists running statistics as parameters, without a gradient
        held = {name: weight.grad for name, weight in recipe.stored(net).items()}
        return loss.detach(), {name: grad for name, grad in held.items() if grad is not None}

    return run


def inference_step(recipe, net, task):
    """Return step(*inputs) -> logits or features, without gradients."""
    if mode == "dygraph":
        return make_inference_step(net)

    net.eval()
    forward = compiled(net.forward)  # to_static reads the names of its arguments

    def step(*inputs):
        with paddle.no_grad():
            return forward(*inputs)

    return step


def evaluation_step(recipe, net, task):
    """Return step(*inputs) -> logits, which leaves the network in training.

    Paddle Inference would have to export the network after each epoch.
    """
    forward = compiled(net.forward)

    def step(*inputs):
        net.eval()
        with paddle.no_grad():
            output = forward(*inputs)
        net.train()
        return output

    return step


def make_inference_step(net):
    """Return step(*inputs) -> net(*inputs) with Paddle Inference."""
    net.eval()
    predictors = []  # created at the first step, from its batch

    def step(*inputs):
        if not predictors:
            predictors.append(make_predictor(net, inputs))
        return predictors[0].run(list(inputs))[0]

    return step


def make_training_step(net, optimiser, loss):
    """Return step(*inputs, y) -> loss, which updates the parameters."""
    on_all = on_all_devices(net, loss)
    compute = compiled(on_all)
    net.train()

    def step(*arrays):
        value = compute(*arrays)
        value.backward()
        optimiser.step()
        optimiser.clear_grad()
        return value.detach()

    def restore(saved):
        restore_network(net, saved)
        restore_slots(net, optimiser, part(saved, "slot."))

    step.state = lambda: dict(network_state(net), **to_arrays(slots(net, optimiser), "slot."))
    step.restore = restore
    if isinstance(on_all, paddle.DataParallel):
        step.communication = lambda: Communication(on_all)
    return step


class Loss(paddle.nn.Layer):
    """A network and its loss as one layer, whose parameters DataParallel synchronises."""

    def __init__(self, net, loss):
        super().__init__()
        self.net, self.loss = net, loss

    def forward(self, *arrays):
        return self.loss(*arrays)


def on_all_devices(net, loss):
    """Return a loss whose gradients are the means over all ranks; or over shards of a batch, if that is configured."""
    if ranks.processes > 1:
        return paddle.DataParallel(Loss(net, loss))
    return ranks.mean_over_shards(loss, paddle.chunk)


class Communication:
    """The exchange of gradients of DataParallel. A step can leave it out, and it can be done alone.

    ``exchanges`` says whether the next step has it.
    """

    def __init__(self, parallel):
        self.parallel = parallel
        sizes = [weight.size for weight in parallel.parameters() if weight.trainable]
        groups = reversed(parallel.group_indices)  # the gradients of the last layer come first
        self.buffers = [paddle.zeros([sum(sizes[index] for index in group)]) for group in groups]

    @property
    def exchanges(self):
        return self.parallel.grad_need_sync

    @exchanges.setter
    def exchanges(self, exchanges):
        self.parallel.grad_need_sync = exchanges  # what no_sync() changes

    def alone(self):
        """Exchange as many numbers, in the same groups, as the steps did."""
        works = [paddle.distributed.all_reduce(numbers, sync_op=False) for numbers in self.buffers]
        for work in works:
            work.wait()

    def meet(self):
        """Return when all ranks have called this."""
        paddle.distributed.barrier()


def to_arrays(tensors, prefix):
    return {prefix + name: value.numpy() for name, value in tensors.items()}


def part(arrays, prefix):
    """Return the arrays whose names begin with ``prefix``, without it."""
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def network_state(net):
    """Return the network and the random generator as named arrays."""
    *numbers, engine = paddle.get_rng_state()[0].__getstate__()
    random = {"random": numpy.array(numbers), "engine": numpy.array(engine)}
    return dict(to_arrays(net.state_dict(), "net."), **random)


def restore_network(net, state):
    net.set_state_dict(part(state, "net."))
    kind = type(paddle.get_rng_state()[0])
    generator = kind.__new__(kind)
    generator.__setstate__((*state["random"].tolist(), state["engine"].tolist()))
    paddle.set_rng_state([generator])


def slots(net, optimiser):
    """Return the optimiser's slots, named by the parameter; Paddle's names count the layers of the process."""
    tensors = {}
    for name, parameter in net.named_parameters():
        of_parameter = part(optimiser.state_dict(), parameter.name + "_")
        tensors.update({"{}/{}".format(name, slot): value for slot, value in of_parameter.items()})
    return tensors


def restore_slots(net, optimiser, state):
    tensors = {}
    for name, parameter in net.named_parameters():
        of_parameter = part(state, name + "/")
        tensors.update({"{}_{}".format(parameter.name, slot): array for slot, array in of_parameter.items()})
    optimiser.set_state_dict(tensors)


def outputs(net, names):
    """Return run(*inputs) -> {layer: output}: outputs of the layers ``names``, eagerly, images channels last."""
    layers = dict(net.named_sublayers())

    def run(*inputs):
        layer_outputs = {}

        def recording_hook(name):
            return lambda layer, inputs, output: layer_outputs.update({name: channels_last(output)})

        hooks = [layers[name].register_forward_post_hook(recording_hook(name)) for name in names]
        net.eval()
        paddle.no_grad()(net.__call__)(*inputs)
        for hook in hooks:
            hook.remove()
        return layer_outputs

    return run


def channels_last(output):
    return output.transpose((0, 2, 3, 1)) if output.ndim == 4 else output


def make_predictor(net, inputs):
    """Return a Paddle Inference predictor of ``net`` for samples like ``inputs``, with oneDNN operations on a CPU."""
    specs = [paddle.static.InputSpec([None] + x.shape[1:], x.dtype) for x in inputs]  # None: of any number
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net")
        paddle.jit.save(net, path, input_spec=specs)
        config = inference.Config(path + ".json", path + ".pdiparams")
        config.disable_glog_info()
        config.set_cpu_math_library_num_threads(threads)
        if device == "cuda":
            config.enable_use_gpu(100, 0)  # initial memory in MB, and the GPU number
        else:
            getattr(config, "enable_" + ONEDNN)()
        return inference.create_predictor(config)


KERNELS = ("Operator", "DygraphKernelLaunch", "StaticKernelLaunch", "Kernel")  # categories of events


def profile(run):
    """Return {operation: (seconds, calls)} during run()."""
    from paddle import profiler

    targets = [profiler.ProfilerTarget.CPU] + ([profiler.ProfilerTarget.GPU] if device == "cuda" else [])
    with tempfile.TemporaryDirectory() as folder:
        recorder = profiler.Profiler(targets=targets)
        recorder.start()
        run()
        recorder.stop()
        path = os.path.join(folder, "profile.json")
        recorder.export(path, format="json")
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    lines = collections.defaultdict(list)
    for event in events:
        # the main thread only waits in the gradient of a compiled function
        if event.get("cat") in KERNELS and not event["name"].startswith("Global_Dy2StGradNode"):
            line = lines[event["pid"], event["tid"]]
            line.append((name_of_operation(event), 1e3 * float(event["ts"]), 1e3 * float(event["dur"])))
    return self_times(lines.values())


def name_of_operation(event):
    """Return "conv2d" for "conv2d dygraph[0.2 ms]", "conv2d kernel launch[...]" and "pd_op.conv2d_[...]"."""
    name = event["name"].split("[")[0].split(" ")[0]
    return (name[len("pd_op.") :] if name.startswith("pd_op.") else name).rstrip("_")


def put(array):
    if array.dtype.names:  # BFLOAT16 of stele_worker.models.inputs; Paddle reads uint16 as bfloat16
        return paddle.to_tensor(array.view("<u2"))
    if array.dtype == "int32":  # labels and tokens: paddle.nn documents int64
        array = array.astype("int64")
    return paddle.to_tensor(array)


def take(data, rows):
    return paddle.gather(data, paddle.to_tensor(rows))


def draw_integers(samples, limit, seed):
    """Return random integers below ``limit``, of shape (samples, 1), on the device."""
    paddle.seed(seed)  # Paddle has no other generator than its global one
    return paddle.randint(0, limit, [samples, 1])


def draw_weight(shape, seed):
    """Return what Paddle's layers start from, as an array in the Task's layout."""
    paddle.seed(seed)
    if len(shape) == 2:
        return paddle.nn.Linear(shape[1], shape[0]).weight.numpy().T
    return paddle.nn.Conv2D(shape[1], shape[0], shape[2:]).weight.numpy()


def on_device(value):
    """Return a tensor as it is, an array as ``put`` copies it."""
    return value if paddle.is_tensor(value) else put(value)


def take_pixels(images, table, layout):
    """Return the augmented images of an epoch: see ``stele_worker.tasks.augmentation``."""
    rows, columns, *cut = [None if one is None else on_device(one) for one in table]
    samples = paddle.arange(images.shape[0]).reshape([-1, 1, 1])
    images = images.transpose([0, 2, 3, 1]) if layout == "NCHW" else images
    images = images[samples, rows.unsqueeze(2), columns.unsqueeze(1)]
    if cut[0] is not None:
        squares = cut[0].unsqueeze(2) & cut[1].unsqueeze(1)
        images = paddle.where(squares.unsqueeze(3), paddle.zeros([1]), images)
    return images.transpose([0, 3, 1, 2]) if layout == "NCHW" else images


def wait(value):
    if device == "cuda":
        paddle.device.synchronize()  # on a CPU a call returns after its computation


def fetch(value):
    return value.astype("float32").numpy()


def forget_peak_memory():
    if device == "cuda":
        paddle.device.cuda.reset_max_memory_allocated()


def peak_memory():
    return paddle.device.max_memory_allocated() if device == "cuda" else None
