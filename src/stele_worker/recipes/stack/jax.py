"""A stack of dense layers in JAX: one jitted step, a loop over checkpointed segments."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.nn import relu

from stele_worker.frameworks.jax import make_training_step, sgd
from stele_worker.layers import outputs
from stele_worker.tasks import stack

LAYOUT = None


def network(task):
    return {}  # weights by name


def load(net, weights):
    net.update((name, jnp.array(array.T)) for name, array in weights.items())
    return net


def layer(net, name, x):
    weight, bias = net[name + ".weight"].astype(x.dtype), net[name + ".bias"].astype(x.dtype)
    return relu(x @ weight + bias)  # (batch, width)


def compute(net, task, branch, x):
    for number in range(task.depth):
        x = layer(net, stack.layer(branch, number), x)
    return x


def recompute(net, task, branch, x):
    # a loop over segments: XLA would merge the second computation of an unrolled segment with the first one on a CPU
    names = [[stack.layer(branch, number) for number in numbers] for numbers in stack.segments(task)]
    stacked = [
        {kind: jnp.stack([net[name + kind] for name in layers]) for kind in (".weight", ".bias")}
        for layers in zip(*names)
    ]

    def segment(x, weights):
        for weight in weights:
            x = layer(weight, "", x)
        return x, None

    return lax.scan(jax.checkpoint(segment, prevent_cse=False), x, stacked)[0]


def forward(net, task, x, run=compute):
    x = x.astype(task.dtype)
    return sum(run(net, task, branch, x) for branch in range(task.branches)).astype(jnp.float32)


def predict(net, task, x):
    return forward(net, task, x)


def loss(net, task):
    run = compute if task.segment is None else recompute

    def mean_squared_error(weights, state, x, y):
        return jnp.square(forward(weights, task, x, run) - y).mean(), state

    return mean_squared_error


def parts(net, task):
    return net, None


def training_step(net, task):
    return make_training_step(
        loss(net, task), parts(net, task), sgd(task), keep=lambda weights, state: net.update(weights)
    )


def stored(net):
    return net


def neutral(name, array):
    return array.T


def activations(net, task):
    return outputs(globals(), ("layer",), lambda x: forward(net, task, x))
