"""Does the oracle compute what PyTorch computes in float64? Finite differences of its gradients are in tests/.

    python perf_tests/oracle.py

For each task, from the weights and the batch of the golden numbers: the largest relative errors of logits, loss,
gradients and, after ten optimiser steps, of all parameters. Ends with 1 if one is above 1e-9. Needs PyTorch.
"""

import sys

import numpy
import torch
from torch.nn.functional import cross_entropy

from stele.parity import golden_numbers
from stele_worker import agreement, recipes, tasks

LIMIT = 1e-9
STEPS = {"cnn": 10, "gru": 10, "resnet50": 1}


def optimiser(net, task):
    if task.name == "gru":
        betas = (task.beta1, task.beta2)
        return torch.optim.Adam(net.parameters(), lr=task.learning_rate, betas=betas, eps=task.epsilon)
    return torch.optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum)


def in_torch(task, weights, x, y):
    """{what: arrays by name}, of the network of PyTorch's recipe with all its parameters in float64."""
    recipe = recipes.load(task.name, "torch")
    net = recipe.load(recipe.network(task), weights).double()
    x, y = torch.from_numpy(x), torch.from_numpy(y).long()
    x = x.double() if x.is_floating_point() else x
    net.eval()
    with torch.no_grad():
        logits = getattr(net, "features", net)(x).numpy()
    net.train()
    update, losses = optimiser(net, task), []
    for step in range(STEPS[task.name]):
        update.zero_grad()
        loss = cross_entropy(net(x), y)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            slopes = gradients(net, recipe)
        update.step()
    moved = {name: recipe.stored(net)[name].detach().numpy() for name in slopes}
    return {
        "logits": {"": logits},
        "losses": {"": numpy.array(losses)},
        "gradients": slopes,
        "parameters": moved,
    }


def gradients(net, recipe):
    """Copies, under the names of the Task, of whatever the recipe hands out to be read back: parameters or views."""
    of = {w.data_ptr(): w.grad for w in net.parameters()}
    stored = {name: w.data_ptr() for name, w in recipe.stored(net).items()}
    return {name: of[place].clone().numpy() for name, place in stored.items() if place in of}


def in_numpy(task, weights, x, y):
    recipe = recipes.load(task.name, "numpy")
    logits = recipe.inference_step(recipe.load(recipe.network(task), weights), task)(x)
    _, slopes = recipe.gradients(recipe.load(recipe.network(task), weights), task)(x, y)
    net = recipe.load(recipe.network(task), weights)
    step = recipe.training_step(net, task)
    losses = numpy.array([step(x, y) for _ in range(STEPS[task.name])])
    moved = {name: net[name] for name in slopes}
    return {"logits": {"": logits}, "losses": {"": losses}, "gradients": slopes, "parameters": moved}


def main():
    worst = 0.0
    for name in tasks.NAMES:
        task = tasks.without_dropout(tasks.make(name, "paper", seed=golden_numbers.SEEDS[name]))
        arguments = task, tasks.weights(task), *tasks.load(name).example(agreement.BATCH[name], task.seed)
        theirs, ours = in_torch(*arguments), in_numpy(*arguments)
        for what, arrays in ours.items():
            error = max(
                abs(array - theirs[what][key]).max() / abs(array).max() for key, array in arrays.items()
            )
            worst = max(worst, float(error))
            print(f"{name:9} {what:11} {error:.1e}", flush=True)
    return int(not worst <= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
