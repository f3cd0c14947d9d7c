"""GRU on IMDB in JAX: one jitted step, lax.scan over time, weights and optimiser state donated."""

import jax.numpy as jnp
from jax import lax
from jax.nn import log_softmax, sigmoid

from stele_worker.frameworks.jax import adam, make_training_step, on_gpu

LAYOUT = None


def network(task):
    return {}  # weights by name: forward computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        dense = array.ndim == 2 and name != "embedding.weight"
        net[name] = jnp.array(array.T if dense else array)  # (in, out)
    return net


def predict(net, task, x):
    x = net["embedding.weight"][x.T].astype(
        task.dtype
    )  # (150, batch, 125): scan iterates over the first axis
    net = {name: weight.astype(task.dtype) for name, weight in net.items() if name != "embedding.weight"}

    def project(x):
        return x @ net["gru.input_weight"] + net["gru.input_bias"]  # (..., batch, 300)

    # a GPU needs few large products and few iterations; on a CPU one product for all steps takes 1.8 times as long,
    # 1.1 times in training, and unrolling is not faster
    hoisted, unroll = on_gpu(), 8 if on_gpu() else 1

    def cell(h, x):
        xr, xz, xn = jnp.split(x if hoisted else project(x), 3, axis=1)
        hr, hz, hn = jnp.split(h @ net["gru.hidden_weight"] + net["gru.hidden_bias"], 3, axis=1)
        r = sigmoid(xr + hr)  # (batch, 100)
        z = sigmoid(xz + hz)
        n = jnp.tanh(xn + r * hn)
        return (1 - z) * n + z * h, None

    start = jnp.zeros((x.shape[1], task.hidden), x.dtype)
    h, _ = lax.scan(cell, start, project(x) if hoisted else x, unroll=unroll)
    return (h @ net["dense.weight"] + net["dense.bias"]).astype(jnp.float32)  # (batch, 2)


def loss(net, task):
    def compute(weights, state, x, y):
        logits = predict(weights, task, x)
        return -jnp.take_along_axis(log_softmax(logits), y[:, None], axis=1).mean(), state

    return compute


def parts(net, task):
    return net, None


def training_step(net, task):
    return make_training_step(
        loss(net, task), parts(net, task), adam(task), keep=lambda weights, state: net.update(weights)
    )


def stored(net):
    return net


def neutral(name, array):
    return array if name == "embedding.weight" else array.T
