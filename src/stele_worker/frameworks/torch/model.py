"""A recipe for a user's PyTorch model."""

import os

import torch

from stele_worker import frameworks
from stele_worker.frameworks.torch import model_checkpoints, model_dropout, recipe
from stele_worker.frameworks.torch.model_inputs import function, inputs, layers, vocabulary  # noqa: F401
from stele_worker.frameworks.torch.model_training import loss, optimizer_of, why_untrained, with_precision  # noqa: F401
from stele_worker.models import building, calling, weights
from stele_worker.models.facts import facts_of
from stele_worker.models.task import without_dropout

framework = frameworks.load("torch")

LAYOUT = None


def network(task):
    net = prepare(building.build_for_task(task, "torch", seed), task)
    arrays, folder = weights.read_files(task.model), task.model.get("checkpoint")
    if not folder or not os.path.isdir(folder) or weights.fit(*expected(net, arrays)):
        return load(net, arrays, task.model)
    converted = model_checkpoints.read(net, folder)
    net = load(net, converted)
    weights.note_checkpoint(converted, arrays)
    return net


def prepare(model, task):
    if without_dropout(task):
        model_dropout.disable(model)
    return recipe.on_device(model)


def load(net, arrays, model=None):
    if arrays is None:
        return net
    held = tensors_for(net, arrays)
    fit = weights.match(*expected(net, arrays), model=model)
    for name, array in fit.items():
        held[name].copy_(torch.from_numpy(array.copy()))
    return net


def tensors_for(net, arrays):
    """Return {name: tensor}; of the names of tied parameters ``arrays`` may hold any."""
    return {next((name for name in names if name in arrays), names[0]): value for names, value in unique_tensors(net)}


def expected(net, arrays):
    """Return the arguments of ``weights.match``: shapes by name, the arrays, and the names that may be missing."""
    shapes = {name: tuple(value.shape) for name, value in tensors_for(net, arrays).items()}
    return shapes, arrays, {name for name, _ in net.named_buffers()}


def save_checkpoint(net, folder):
    model_checkpoints.save(net, folder)


def unique_tensors(net):
    """Return [(names, value)] of parameters and buffers in order; a tensor with several names appears once."""
    result = {}
    for name, value in net.state_dict(keep_vars=True).items():
        if torch.is_tensor(value):
            result.setdefault(id(value), ([], value.detach()))[0].append(name)
    return list(result.values())


def facts(net):
    tensors = {name: value for name, value in net.state_dict(keep_vars=True).items() if torch.is_tensor(value)}
    parameters = {name for name, value in tensors.items() if isinstance(value, torch.nn.Parameter)}
    return facts_of(tensors, parameters, net.training)


def gradients(net, task):
    compute = framework.compiled(loss(net, task))
    trainable = {name: weight for name, weight in net.named_parameters() if weight.requires_grad}

    def run(*batch):
        net.train()
        net.zero_grad()
        value = compute(*batch)
        value.backward()
        # a parameter that the loss does not reach has no gradient: zero
        grads = {name: torch.zeros_like(w) if w.grad is None else w.grad for name, w in trainable.items()}
        return value.detach(), grads

    return run


def training_step(net, task):
    optimizer, compute = optimizer_of(net, task), framework.compiled(loss(net, task))
    net.train()

    def step(*batch):
        optimizer.zero_grad()
        value = compute(*batch)
        value.backward()
        optimizer.step()
        return value.detach()

    return step


def inference_step(net, task):
    return torch.inference_mode()(framework.compiled(predict(net, task)))


def predict(net, task):
    net.eval()
    flags = calling.flags(net.forward, training=False)
    return with_precision(calling.make_caller(net, [each.name for each in task.inputs], flags), task)


def raw(net, task):
    net.eval()
    return torch.no_grad()(calling.make_caller(net, calling.names(task), calling.flags(net.forward, training=False)))


def stored(net):
    return {names[0]: value for names, value in unique_tensors(net)}


def neutral(name, array):
    return array.copy()  # ``fetch`` may share memory with a parameter, which the next step changes


def activations(net, task):
    """Return run(*inputs) -> {module: output} of the modules without children, in order of execution."""
    step = torch.inference_mode()(predict(net, task))

    def run(*batch):
        seen, hooks = {}, []

        def record(name):
            def hook(module, given, output):
                if torch.is_tensor(output) and name not in seen:  # of a module called twice the first time
                    seen[name] = output.clone()  # the next layer may work in place

            return hook

        for name, module in net.named_modules():
            if not list(module.children()):
                hooks.append(module.register_forward_hook(record(name)))
        try:
            step(*batch)
        finally:
            for hook in hooks:
                hook.remove()
        return seen

    return run


def seed(value):
    torch.manual_seed(value)


def count(net):
    return sum(weight.numel() for weight in net.parameters())
