"""Does the oracle compute what PyTorch computes in float64? tests/ checks its gradients by finite differences.

    python -m checks oracle

Prints for each task, with the weights and the batch of the golden numbers, the largest relative errors of the logits,
the losses, the gradients, and of all parameters after the optimiser steps. Ends with 1 if one is above 1e-9. Needs
PyTorch.
"""

import sys

import numpy
import torch

from stele.parity import golden_numbers, ladder
from stele_suite import tasks
from stele_worker import recipes

LIMIT = 1e-9
MOST_STEPS = 10


def make_optimiser(net, task):
    if hasattr(task, "beta1"):
        betas = (task.beta1, task.beta2)
        return torch.optim.Adam(net.parameters(), lr=task.learning_rate, betas=betas, eps=task.epsilon)
    return torch.optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum)


def steps_of(task):
    return min(tasks.load(task.name).PARITY_STEPS, MOST_STEPS)


def double(array):
    tensor = torch.from_numpy(array)
    return tensor.double() if tensor.is_floating_point() else tensor.long()


def compute_in_torch(task, weights, arrays):
    """Return {quantity: arrays by name}, from PyTorch's recipe with all parameters in float64."""
    recipe = recipes.load(task.name, "torch")
    net = recipe.load(recipe.network(task), weights).double()
    *inputs, y = map(double, arrays)
    logits = recipe.inference_step(net, task)(*inputs).numpy()
    net.train()
    optimiser, losses, compute = make_optimiser(net, task), [], recipe.loss_function(net, task)
    for step in range(steps_of(task)):
        optimiser.zero_grad()
        loss = compute(*inputs, y)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            grads = gradients(net, recipe)
        optimiser.step()
    parameters = {name: recipe.stored(net)[name].detach().numpy() for name in grads}
    return {
        "logits": {"": logits},
        "losses": {"": numpy.array(losses)},
        "gradients": grads,
        "parameters": parameters,
    }


def gradients(net, recipe):
    """Return copies of the gradients under the Task's names. The recipe's stored() gives parameters or views."""
    grads = {w.data_ptr(): w.grad for w in net.parameters()}
    stored = {name: w.data_ptr() for name, w in recipe.stored(net).items()}
    return {name: grads[address].clone().numpy() for name, address in stored.items() if address in grads}


def compute_in_numpy(task, weights, arrays):
    recipe = recipes.load(task.name, "numpy")
    logits = recipe.inference_step(recipe.load(recipe.network(task), weights), task)(*arrays[:-1])
    _, grads = recipe.gradients(recipe.load(recipe.network(task), weights), task)(*arrays)
    net = recipe.load(recipe.network(task), weights)
    step = recipe.training_step(net, task)
    losses = numpy.array([step(*arrays) for _ in range(steps_of(task))])
    parameters = {name: net[name] for name in grads}
    return {"logits": {"": logits}, "losses": {"": losses}, "gradients": grads, "parameters": parameters}


def main():
    torch.Tensor.float = torch.Tensor.double  # the recipes round logits to float32
    worst = 0.0
    for name in tasks.NAMES:
        if tasks.why_absent(name, "torch", "train"):  # its network is that of another task
            continue
        task = tasks.without_dropout(tasks.make(name, "parity", seed=golden_numbers.seed(name)))
        arguments = task, tasks.weights(task), tasks.load(name).example(task, task.batch)
        expected, computed = compute_in_torch(*arguments), compute_in_numpy(*arguments)
        for quantity, arrays in computed.items():
            largest = max(abs(array).max() for array in arrays.values())
            error = max(
                abs(array - expected[quantity][key]).max() / max(abs(array).max(), ladder.VANISHING * largest)
                for key, array in arrays.items()
            )
            worst = max(worst, float(error))
            print(f"{name:11} {quantity:11} {error:.1e}", flush=True)
    return int(not worst <= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
