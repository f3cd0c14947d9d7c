"""A stack of dense layers in JAX: one jitted step, a loop over checkpointed segments."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.nn import relu

from stele_suite.tasks import stack
from stele_worker.frameworks.jax.recipe import JaxRecipe, sgd


def layer(net, name, x):
    weight, bias = net[name + ".weight"].astype(x.dtype), net[name + ".bias"].astype(x.dtype)
    return relu(x @ weight + bias)  # (batch, width)


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


class Recipe(JaxRecipe):
    def branch(self, net, task, branch, x):
        for number in range(task.depth):
            name = stack.layer(branch, number)
            x = self.record(name, layer(net, name, x))
        return x

    def forward(self, net, task, x, training=None):
        run = self.branch if training is None or task.segment is None else recompute
        x = x.astype(task.dtype)
        return sum(run(net, task, branch, x) for branch in range(task.branches)).astype(jnp.float32)

    def loss(self, task, output, y):
        return jnp.square(output - y).mean()

    def optimiser(self, net, task):
        return sgd(task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 else array  # (in, out)
