"""What the recipes of PyTorch have in common: steps, gradients and optimisers."""

import torch

from stele_worker import frameworks
from stele_worker.frameworks.recipe import Recipe
from stele_worker.ranks import ranks

framework = frameworks.load("torch")

compiled = framework.compiled


class TorchRecipe(Recipe):
    NAMES = {}  # {the Task's name of a parameter: the network's}, where they differ

    def forward(self, net, task, *inputs):
        with autocast(task):
            return net(*inputs).float()

    def is_of_task(self, name):
        """Return whether the Task has a parameter or buffer of the network: it has no counters."""
        return not name.endswith("num_batches_tracked")

    def assign(self, net, arrays):
        values = {self.NAMES.get(name, name): torch.from_numpy(array) for name, array in arrays.items()}
        others = {name: value for name, value in net.state_dict().items() if not self.is_of_task(name)}
        net.load_state_dict({**others, **values})
        return on_device(net)

    def stored(self, net):
        names = {own: name for name, own in self.NAMES.items()}
        values = net.state_dict(keep_vars=True).items()
        return {names.get(name, name): value for name, value in values if self.is_of_task(name)}

    def loss_function(self, net, task):
        """Return compute(*inputs, y) -> loss."""

        def compute(*arrays):
            *inputs, y = arrays
            return self.loss(task, self.forward(net, task, *inputs), y)

        return compute

    def training_step(self, net, task):
        return make_training_step(net, self.optimiser(net, task), self.loss_function(net, task))

    def gradients(self, net, task):
        on_all = on_all_devices(net, self.loss_function(net, task))
        compute = compiled(on_all)

        def run(*arrays):
            net.train()
            net.zero_grad()
            loss = compute(*arrays)
            loss.backward()
            grads = {name: weight.grad for name, weight in self.stored(net).items()}
            return loss.detach(), {name: grad for name, grad in grads.items() if grad is not None}

        return run

    def inference_step(self, net, task):
        net.eval()
        return torch.inference_mode()(compiled(lambda *inputs: self.predict(net, task, *inputs)))

    def evaluation_step(self, net, task):
        compute = self.inference_step(net, task)
        net.train()

        def step(*inputs):
            net.eval()
            output = compute(*inputs)
            net.train()
            return copy_if_reused(output)

        return step

    def activations(self, net, task):
        if not self.layers(task):
            return None
        return outputs(net, self.layers(task), lambda *inputs: self.forward(net, task, *inputs))


def make_training_step(net, optimiser, loss):
    """Return step(*inputs, y) -> loss, which updates the parameters."""
    on_all = on_all_devices(net, loss)
    compute = framework.compiled(on_all)
    net.train()
    if framework.mode == "as-shipped":
        set_fused(optimiser, None, torch.optim.Optimizer)  # PyTorch's default
    if framework.is_sharded():  # the fused SGD does not know parts of parameters in 2.13
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
    return value.clone() if framework.MODES[framework.mode] and framework.device.type == "cuda" else value


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
    if framework.is_sharded():
        return loss
    if ranks.processes > 1:
        devices = [framework.device] if framework.device.type == "cuda" else None
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
    future = torch.futures.Future(devices=[framework.device] if framework.device.type == "cuda" else None)
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
    return (torch.cuda if framework.device.type == "cuda" else torch).get_rng_state().numpy()


def restore_random(array):
    (torch.cuda if framework.device.type == "cuda" else torch).set_rng_state(torch.from_numpy(array))


def parts(optimiser):
    """Return the optimisers of which an optimiser of a recipe consists."""
    return getattr(optimiser, "parts", (optimiser,))


def autocast(task):
    """Return a context in which operations use the arithmetic of the Task; parameters are always float32."""
    return torch.autocast(framework.device.type, getattr(torch, task.dtype), enabled=task.dtype != "float32")


def image_format(task):
    """Return the memory format of images: convolutions on a CPU, and those of tensor cores, prefer channels last."""
    first = framework.mode == "as-shipped" or framework.channels_first(task.dtype)
    return torch.contiguous_format if first else torch.channels_last


def on_device(net):
    """Move a network's parameters to the device; return the network. With FSDP2 each rank keeps a part of each."""
    net = net.to(framework.device)
    return shard(net) if framework.is_sharded() else net


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
