"""Does the oracle compute what PyTorch computes in float64? tests/ checks its gradients by finite differences.

    python perf_tests/oracle.py

Prints for each task, with the weights and the batch of the golden numbers, the largest relative errors of the logits,
the losses, the gradients, and of all parameters after the optimiser steps. Ends with 1 if one is above 1e-9. Needs
PyTorch.
"""

import sys

import numpy
import torch
from torch.nn.functional import cross_entropy

from stele.parity import golden_numbers
from stele_worker import recipes, tasks

LIMIT = 1e-9
STEPS = {"cnn": 10, "gru": 10, "resnet50": 1}


def make_optimiser(net, task):
    if task.name == "gru":
        betas = (task.beta1, task.beta2)
        return torch.optim.Adam(net.parameters(), lr=task.learning_rate, betas=betas, eps=task.epsilon)
    return torch.optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum)


def compute_in_torch(task, weights, x, y):
    """Return {quantity: arrays by name}, from PyTorch's recipe with all parameters in float64."""
    recipe = recipes.load(task.name, "torch")
    net = recipe.load(recipe.network(task), weights).double()
    x, y = torch.from_numpy(x), torch.from_numpy(y).long()
    x = x.double() if x.is_floating_point() else x
    net.eval()
    with torch.no_grad():
        logits = getattr(net, "features", net)(x).numpy()
    net.train()
    optimiser, losses = make_optimiser(net, task), []
    for step in range(STEPS[task.name]):
        optimiser.zero_grad()
        loss = cross_entropy(net(x), y)
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


def compute_in_numpy(task, weights, x, y):
    recipe = recipes.load(task.name, "numpy")
    logits = recipe.inference_step(recipe.load(recipe.network(task), weights), task)(x)
    _, grads = recipe.gradients(recipe.load(recipe.network(task), weights), task)(x, y)
    net = recipe.load(recipe.network(task), weights)
    step = recipe.training_step(net, task)
    losses = numpy.array([step(x, y) for _ in range(STEPS[task.name])])
    parameters = {name: net[name] for name in grads}
    return {"logits": {"": logits}, "losses": {"": losses}, "gradients": grads, "parameters": parameters}


def main():
    worst = 0.0
    for name in tasks.NAMES:
        task = tasks.without_dropout(tasks.make(name, "paper", seed=golden_numbers.SEEDS[name]))
        arguments = (
            task,
            tasks.weights(task),
            *tasks.load(name).example(tasks.load(name).PARITY_BATCH, task.seed),
        )
        expected, computed = compute_in_torch(*arguments), compute_in_numpy(*arguments)
        for quantity, arrays in computed.items():
            error = max(
                abs(array - expected[quantity][key]).max() / abs(array).max() for key, array in arrays.items()
            )
            worst = max(worst, float(error))
            print(f"{name:9} {quantity:11} {error:.1e}", flush=True)
    return int(not worst <= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
