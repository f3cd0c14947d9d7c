"""A chain of operations in JAX: one jitted step."""

import jax.numpy as jnp

from stele_worker.frameworks.jax.recipe import JaxRecipe, sgd


class Recipe(JaxRecipe):
    def forward(self, net, task, x, training=None):
        factor, summand, x = [array.astype(task.dtype) for array in (net["factor"], net["summand"], x)]
        for _ in range(task.links):
            x = x * factor + summand  # (batch, width)
        return x.astype(jnp.float32)

    def loss(self, task, output, y):
        return jnp.square(output - y).mean()

    def optimiser(self, net, task):
        return sgd(task)
