"""PyTorch."""

import atexit
import os

import torch

from stele_worker import modes, ranks

PARALLEL = "processes"  # DistributedDataParallel, or FSDP2 in its mode; with ranks as torchrun starts them
STATISTICS = "own"  # SyncBatchNorm would exchange them; it needs GPUs
strict = True  # whether it is an error that PyTorch executes a function eagerly after too many recompilations
# the arguments of torch.compile; eager does not compile. "as-shipped" is eager without tuning, "frozen" folds the
# weights into the compiled inference, "fsdp" gives each rank a part of each parameter
MODES = {
    "eager": None,
    "as-shipped": None,
    "compile": {},
    "max-autotune": {"mode": "max-autotune"},
    "graphs": {"mode": "reduce-overhead"},  # CUDA graphs
    "frozen": {},
    "fsdp": None,
}
NOT_REPLAYED = {"max-autotune": {"mode": "max-autotune-no-cudagraphs"}, "graphs": {}}  # without CUDA graphs
device = torch.device("cpu")
mode = "eager"


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings."""
    global device, mode
    device, mode = torch.device(settings["device"]), settings["mode"]
    if MODES[mode] is not None:
        modes.require_compiler(mode, ["TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"])
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("PyTorch {} found no CUDA device: use device 'cpu'".format(torch.__version__))
    if ranks.processes > 1:
        join_ranks()
    torch.set_num_threads(settings["threads"])
    torch.manual_seed(settings["seed"])
    if settings["precision"] != "default":
        tf32 = settings["precision"] == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
    if settings["tuned"]:
        torch.backends.cudnn.benchmark = settings["autotune"]
    if settings["deterministic"]:
        torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = False, True
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        torch.use_deterministic_algorithms(True)  # off by default; the call imports the compiler for a second


def join_ranks():
    """Take a device of this rank, and connect it with the others: NCCL between GPUs, Gloo between processes."""
    global device
    if device.type == "cuda":
        if torch.cuda.device_count() < ranks.processes:
            message = "PyTorch found {} CUDA devices; --devices {} needs as many"
            raise RuntimeError(message.format(torch.cuda.device_count(), ranks.processes))
        device = torch.device("cuda", ranks.number())
        torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    atexit.register(torch.distributed.destroy_process_group)


def versions():
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": str(torch.backends.cudnn.version()) if device.type == "cuda" else None,
    }


def flags():
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn_tf32": torch.backends.cudnn.allow_tf32,
        "cudnn_autotune": torch.backends.cudnn.benchmark,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "onednn": getattr(torch.backends.mkldnn, "enabled", torch.backends.mkldnn.is_available()),
        "cpu_capability": torch.backends.cpu.get_cpu_capability()
        if hasattr(torch.backends, "cpu")
        else None,  # 2.0
    }


def compiled(function, *, replayed=True):
    """Return a function of tensors as the mode executes it.

    A function that changes its inputs is not ``replayed`` by CUDA graphs: PyTorch may crash (pytorch issue 192748).
    """
    if MODES[mode] is None:
        return function
    from torch._dynamo import config as dynamo
    from torch._inductor import config as inductor

    # on a CPU, products are searched only if their weights are constants
    inductor.freezing = mode == "frozen" or (mode == "max-autotune" and device.type == "cpu")
    if hasattr(dynamo, "fail_on_recompile_limit_hit"):  # from 2.6 on
        dynamo.fail_on_recompile_limit_hit = strict
    return torch.compile(function, **(MODES[mode] if replayed else NOT_REPLAYED.get(mode, MODES[mode])))


def in_force():
    """Return what torch.compile did: graphs, graph breaks, recompilations, and what it left eager; {} in eager mode."""
    if MODES[mode] is None:
        return {}
    from torch._dynamo.convert_frame import FRAME_COMPILE_COUNTER  # compilations of each frame
    from torch._dynamo.utils import counters

    done = {
        "graphs": counters["stats"]["unique_graphs"],
        "graph_breaks": sum(counters["graph_break"].values()),
        "recompilations": sum(FRAME_COMPILE_COUNTER.values()) - len(FRAME_COMPILE_COUNTER),
        "eager_functions": counters["frames"]["total"] - counters["frames"]["ok"],  # such as that of a GRU
    }
    if mode == "graphs":
        done["skipped_graphs"] = counters["inductor"]["cudagraph_skips"]
    return modes.check(mode, done, done["graphs"] > 0)


def gradients(recipe, net, task):
    """Return run(*inputs, y) -> (loss, {parameter: gradient})."""
    compute = compiled(on_all_devices(net, recipe.loss(net, task)))

    def run(*arrays):
        net.train()
        net.zero_grad()
        loss = compute(*arrays)
        loss.backward()
        held = {name: weight.grad for name, weight in recipe.stored(net).items()}
        return loss.detach(), {name: grad for name, grad in held.items() if grad is not None}

    return run


def inference_step(recipe, net, task):
    """Return step(*inputs) -> logits or features."""
    net.eval()
    return torch.inference_mode()(compiled(lambda *inputs: recipe.predict(net, task, *inputs)))


def evaluation_step(recipe, net, task):
    """Return step(*inputs) -> logits, which leaves the network in training."""
    compute = inference_step(recipe, net, task)
    net.train()

    def step(*inputs):
        net.eval()
        output = compute(*inputs)
        net.train()
        return copy_if_reused(output)

    return step


def make_training_step(net, optimiser, loss):
    """Return step(*inputs, y) -> loss, which updates the parameters."""
    on_all = on_all_devices(net, loss)
    compute = compiled(on_all)
    net.train()
    if mode == "as-shipped":
        set_fused(optimiser, None, torch.optim.Optimizer)  # PyTorch's default
    if is_sharded():  # the fused SGD does not know parts of parameters in 2.13
        set_fused(optimiser, False, torch.optim.SGD)

    def step(*arrays):
        optimiser.zero_grad()
        value = compute(*arrays)
        value.backward()
        optimiser.step()
        return copy_if_reused(value.detach())

    step.state = lambda: training_state(net, optimiser)
    step.restore = lambda state: restore_training(net, optimiser, state)
    add_communication(step, on_all)
    return step


def copy_if_reused(value):
    """Return the result of a step; a copy where CUDA graphs may write that of the next step to the same memory."""
    return value.clone() if MODES[mode] and device.type == "cuda" else value


def set_fused(optimiser, value, kind):
    """Set whether the optimisers of a kind update with one fused operation."""
    for part in parts(optimiser):
        for group in part.param_groups if isinstance(part, kind) else ():
            group["fused"] = value


class Loss(torch.nn.Module):
    """A network and its loss as one module, whose parameters DistributedDataParallel synchronises."""

    def __init__(self, net, loss):
        super().__init__()
        self.net, self.loss = net, loss

    def forward(self, *arrays):
        return self.loss(*arrays)


def on_all_devices(net, loss):
    """Return a loss whose gradients are the means over all ranks; or over shards of a batch, if that is configured.

    Batch normalisation uses the statistics of the rank's own samples, as is the default of DistributedDataParallel.
    """
    if is_sharded():
        return loss
    if ranks.processes > 1:
        devices = [device] if device.type == "cuda" else None
        return torch.nn.parallel.DistributedDataParallel(Loss(net, loss), device_ids=devices)
    return ranks.mean_over_shards(loss, torch.chunk)


def add_communication(step, on_all):
    """Let ``step`` leave out the communication of a loss that ``on_all_devices`` returned, if it has any."""
    if isinstance(on_all, torch.nn.parallel.DistributedDataParallel):
        step.communication = lambda: Communication(on_all)


class Communication:
    """The exchange of gradients of DistributedDataParallel. A step can leave it out, and it can be done alone.

    ``exchanges`` says whether the next step has it. Create it once, after all other steps.
    """

    def __init__(self, parallel):
        self.exchanges, self.buckets = True, {}
        parallel.register_comm_hook(self, exchange_bucket)

    def alone(self):
        """Exchange as many numbers, in the same buckets, as the steps did."""
        works = [torch.distributed.all_reduce(numbers, async_op=True) for numbers in self.buckets.values()]
        for work in works:
            work.wait()

    def meet(self):
        """Return when all ranks have called this."""
        torch.distributed.barrier()


def exchange_bucket(communication, bucket):
    """Return a future of the mean of a bucket of gradients over all ranks; of the rank's own, if it is left out."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    numbers = bucket.buffer()
    if bucket.index() not in communication.buckets:
        communication.buckets[bucket.index()] = torch.zeros_like(numbers)
    if communication.exchanges:
        return allreduce_hook(None, bucket)
    future = torch.futures.Future(devices=[device] if device.type == "cuda" else None)
    future.set_result(numbers)
    return future


def training_state(net, optimiser):
    """Return the network, the optimiser's slots and count of steps, and the random generator as named arrays."""
    tensors = {"net." + name: value for name, value in net.state_dict().items()}
    for number, part in enumerate(parts(optimiser)):
        for index, slots in part.state_dict()["state"].items():
            prefix = "slot.{}.{}.".format(number, index)
            tensors.update({prefix + name: torch.as_tensor(slots[name]) for name in slots})
    tensors["count"] = torch.tensor(getattr(optimiser, "count", 0))
    return dict({name: value.cpu().numpy() for name, value in tensors.items()}, random=random_state())


def restore_training(net, optimiser, state):
    tensors = {name: torch.from_numpy(array) for name, array in state.items()}
    net.load_state_dict({name[4:]: value for name, value in tensors.items() if name.startswith("net.")})
    slots = [{} for _ in parts(optimiser)]
    for name, value in tensors.items():
        if name.startswith("slot."):
            _, number, index, slot = name.split(".")
            slots[int(number)].setdefault(int(index), {})[slot] = value
    for part, of_part in zip(parts(optimiser), slots):
        values = [value for group in part.param_groups for value in group["params"]]
        of_part = {index: in_format_of(values[index], own) for index, own in of_part.items()}
        part.load_state_dict(dict(part.state_dict(), state=of_part))
    optimiser.count = int(tensors["count"])
    restore_random(state["random"])


def in_format_of(parameter, slots):
    """Return an optimiser's slots with the strides of their parameter: a fused optimiser reads them in this order."""
    return {
        name: torch.empty_strided(parameter.shape, parameter.stride(), dtype=slot.dtype).copy_(slot)
        if slot.shape == parameter.shape
        else slot
        for name, slot in slots.items()
    }


def random_state():
    """Return the state of the random generator of the device as an array."""
    return (torch.cuda if device.type == "cuda" else torch).get_rng_state().numpy()


def restore_random(array):
    (torch.cuda if device.type == "cuda" else torch).set_rng_state(torch.from_numpy(array))


def parts(optimiser):
    """Return the optimisers of which an optimiser of a recipe consists."""
    return getattr(optimiser, "parts", (optimiser,))


def autocast(task):
    """Return a context in which operations use the arithmetic of the Task; parameters are always float32."""
    return torch.autocast(device.type, getattr(torch, task.dtype), enabled=task.dtype != "float32")


def image_format(task):
    """Return the memory format of images: convolutions on a CPU, and those of tensor cores, prefer channels last."""
    first = mode == "as-shipped" or channels_first(task.dtype)
    return torch.contiguous_format if first else torch.channels_last


def channels_first(dtype):
    """Return whether channels first are faster: for IEEE float32 on a GPU. See pytorch issue 44943."""
    exact = dtype == "float32" and not torch.backends.cudnn.allow_tf32
    return device.type == "cuda" and exact


def on_device(net):
    """Move a network's parameters to the device; return the network. With FSDP2 each rank keeps a part of each."""
    net = net.to(device)
    return shard(net) if is_sharded() else net


def is_sharded():
    """Return whether FSDP2 trains: each rank has a part of each parameter, and a gradient is the mean of all ranks."""
    return mode == "fsdp" and ranks.processes > 1


def shard(net):
    """Divide each layer that is in a list of layers, and then the rest, as the tutorial of FSDP2 does.

    The parameters of such a group are gathered, used and freed together.
    """
    from torch.distributed.fsdp import fully_shard

    net = net.to(memory_format=torch.contiguous_format)  # FSDP2 of 2.13 refuses channels last
    for layers in reversed(list(net.modules())):  # an inner layer first
        if isinstance(layers, torch.nn.ModuleList):
            for layer in layers:
                fully_shard(layer)
    return fully_shard(net)


def outputs(net, names, step):
    """Return run(*inputs) -> {layer: output}: of the modules ``names`` during ``step``, images channels last."""

    def run(*inputs):
        layer_outputs = {}

        def recording_hook(name):
            return lambda module, inputs, output: layer_outputs.update({name: channels_last(output)})

        hooks = [net.get_submodule(name).register_forward_hook(recording_hook(name)) for name in names]
        net.eval()
        with torch.inference_mode():
            step(*inputs)
        for hook in hooks:
            hook.remove()
        return layer_outputs

    return run


def channels_last(output):
    return output.permute(0, 2, 3, 1) if output.ndim == 4 else output


# what the profiler shows around the Python code of torch.optim.Optimizer
ANNOTATIONS = ("Optimizer.step#", "Optimizer.zero_grad#")


def profile(run):
    """Return {operation: (seconds, calls)} during run(). An operation counts without those that it calls."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    cuda = device.type == "cuda"
    with record(activities=[ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if cuda else [])) as profiler:
        run()
    # PyTorch called it cuda until 2.3
    names = ("self_device_time_total", "self_cuda_time_total") if cuda else ("self_cpu_time_total",)
    return {
        event.key: (1e-6 * next(getattr(event, name) for name in names if hasattr(event, name)), event.count)
        for event in profiler.key_averages()
    }


def put(array):
    if array.dtype.names:  # BFLOAT16 of stele_worker.models.inputs
        return torch.from_numpy(array.view("<i2")).view(torch.bfloat16).to(device)
    tensor = torch.from_numpy(array)
    if tensor.dtype == torch.int32:  # labels and tokens: cross_entropy takes only int64
        tensor = tensor.long()
    return tensor.to(device)


def take(data, rows):
    return data[torch.from_numpy(rows).to(device)]


def draw_integers(samples, limit, seed):
    """Return random integers below ``limit``, of shape (samples, 1), on the device."""
    generator = torch.Generator(device).manual_seed(seed)
    return torch.randint(limit, (samples, 1), generator=generator, device=device)


def draw_weight(shape, seed):
    """Return what PyTorch's layers start from, as an array in the Task's layout."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.init.kaiming_uniform_(torch.empty(shape), a=5**0.5).numpy()


def take_pixels(images, table, layout):
    """Return the augmented images of an epoch: see ``stele_worker.tasks.augmentation``."""
    rows, columns, *cut = [None if one is None else torch.as_tensor(one, device=device) for one in table]
    first = layout == "NCHW"
    # one gather over flat pixels is several times faster on a CPU than an index for each axis
    flat = images.flatten(2) if first else images.flatten(1, 2)
    pixels = (rows.long()[:, :, None] * images.shape[3 if first else 2] + columns.long()[:, None, :]).flatten(
        1
    )
    taken = torch.take_along_dim(flat, pixels.unsqueeze(1 if first else 2), 2 if first else 1)
    taken = taken.view(images.shape)
    if cut[0] is not None:
        taken.masked_fill_((cut[0][:, :, None] & cut[1][:, None, :]).unsqueeze(1 if first else 3), 0)
    return taken


def wait(value):
    if device.type == "cuda":
        torch.cuda.synchronize()


def fetch(value):
    value = value.detach()
    if hasattr(value, "full_tensor"):  # FSDP2: all ranks exchange their parts
        value = value.full_tensor()
    return value.float().cpu().numpy()


def tracked(value):
    return value.requires_grad


def forget_peak_memory():
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()


def peak_memory():
    return torch.cuda.max_memory_allocated() if device.type == "cuda" else None
