"""PyTorch: autograd, module hooks, torch.compile, torch.export."""

import os

import torch
from torch import nn
from torch.func import functional_call


def make_tripling_layer():
    layer = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        layer.weight.fill_(3.0)
    return layer


def second_derivative():
    x = torch.tensor(2.0, requires_grad=True)
    (grad,) = torch.autograd.grad(x**3, x, create_graph=True)
    (curvature,) = torch.autograd.grad(grad, x)
    return curvature


def gradient_penalty():
    w, x = torch.tensor(2.0, requires_grad=True), torch.tensor(1.5, requires_grad=True)
    (grad,) = torch.autograd.grad(w * x**2, x, create_graph=True)
    ((grad.abs() - 1) ** 2).backward()
    return w.grad


def hooks():
    layer = make_tripling_layer()
    layer.register_forward_pre_hook(lambda module, inputs: (2 * inputs[0],))
    layer.register_forward_hook(lambda module, inputs, output: output + 1)
    return layer(torch.tensor([2.0])).detach()


def shared_parameter():
    first, second = make_tripling_layer(), nn.Linear(1, 1, bias=False)
    second.weight = first.weight
    nn.Sequential(first, second)(torch.tensor([2.0])).backward()
    return first.weight.grad


def predicted_weight():
    hyper, layer = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        hyper.weight.fill_(2.0)
    weight = hyper(torch.tensor([[3.0]]))
    y = functional_call(layer, {"weight": weight}, (torch.tensor([5.0]),))
    y.backward()
    return y.item(), hyper.weight.grad.item()


def control_flow():
    from torch._higher_order_ops import while_loop

    @torch.compile(fullgraph=True)
    def halvings(x):
        count, _ = while_loop(
            lambda count, x: x > 1,
            lambda count, x: (count + 1, x / 2),
            (torch.zeros((), dtype=torch.int64), x),
        )
        return count

    return [halvings(torch.tensor(value)).item() for value in (100.0, 3.0)]


def dynamic_batch():
    compilations = []

    def backend(graph, inputs):
        compilations.append(graph)
        return graph.forward

    run = torch.compile(make_tripling_layer(), backend=backend, dynamic=True)
    for batch in (2, 3, 5):
        run(torch.zeros(batch, 1))
    return len(compilations)


def saved_model(folder):
    path, batch = os.path.join(folder, "net.pt2"), torch.export.Dim("batch")
    program = torch.export.export(make_tripling_layer(), (torch.zeros(2, 1),), dynamic_shapes=({0: batch},))
    torch.export.save(program, path)
    return torch.export.load(path).module()(torch.tensor([[2.0]])).detach()
