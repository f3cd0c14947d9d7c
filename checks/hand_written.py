"""Hand-written training loops of three models, with which ``model_steps.py`` compares ``--model``.

    hand_written.py NAME THREADS

makes a step for every line that it reads, and prints its duration in seconds. ``build_NAME`` is what ``--model`` names.
"""

import itertools
import sys

import numpy
from answering import answer, configure

LEARNING_RATE = 0.01
SHAPES = {"torch": (32, 3, 32, 32), "jax": (256, 512), "keras": (256, 512)}
CLASSES = 10


def build_torch():
    from torch import nn

    layers = [nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4096, CLASSES))


def build_jax():
    import jax
    import jax.numpy as jnp

    sizes = (512, 1024, 1024, CLASSES)

    def init(key, x):
        keys = jax.random.split(key, len(sizes))
        return [
            (0.02 * jax.random.normal(k, (n, m)), jnp.zeros(m))
            for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=False)
        ]

    def apply(params, x):
        for weight, bias in params[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        return x @ params[-1][0] + params[-1][1]

    return init, apply


def build_keras():
    from keras import Sequential, layers

    hidden = [layers.Dense(1024, activation="relu") for _ in range(2)]
    return Sequential([layers.Input((512,)), *hidden, layers.Dense(CLASSES)])


def step_torch():
    import torch

    net = build_torch()
    optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE, fused=True)

    def step(x, y):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def step_jax():
    import jax
    import jax.numpy as jnp

    init, apply = build_jax()
    params = init(jax.random.key(0), None)

    def loss_of(params, x, y):
        scores = jax.nn.log_softmax(apply(params, x))
        return -jnp.take_along_axis(scores, y[:, None], axis=1).mean()

    @jax.jit
    def update(params, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        return jax.tree.map(lambda w, g: w - LEARNING_RATE * g, params, grads), loss

    def step(x, y):
        nonlocal params
        params, loss = update(params, x, y)
        return loss

    return step


def step_keras():
    """The custom training loop that Keras documents for JAX; train_on_batch also computes metrics."""
    from functools import partial

    import jax
    import keras

    net, optimizer = build_keras(), keras.optimizers.SGD(LEARNING_RATE)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer.build(net.trainable_variables)
    state = [
        [variable.value for variable in variables]
        for variables in (net.trainable_variables, net.non_trainable_variables, optimizer.variables)
    ]

    def loss_of(weights, others, x, y):
        logits, others = net.stateless_call(weights, others, x, training=True)
        return loss(y, logits), others

    @partial(jax.jit, donate_argnums=0)
    def update(state, x, y):
        weights, others, slots = state
        (value, others), grads = jax.value_and_grad(loss_of, has_aux=True)(weights, others, x, y)
        weights, slots = optimizer.stateless_apply(slots, grads, weights)
        return [weights, others, slots], value

    def step(x, y):
        nonlocal state
        state, value = update(state, x, y)
        return value

    return step


def main(name: str, threads: str) -> None:
    framework = configure(name, threads)
    rng = numpy.random.RandomState(0)
    x = framework.put(rng.standard_normal(SHAPES[name]).astype(numpy.float32))
    y = framework.put(rng.randint(0, CLASSES, SHAPES[name][0]).astype(numpy.int32))
    step = {"torch": step_torch, "jax": step_jax, "keras": step_keras}[name]()
    answer(framework, step, itertools.repeat((x, y)))


if __name__ == "__main__":
    main(*sys.argv[1:])
