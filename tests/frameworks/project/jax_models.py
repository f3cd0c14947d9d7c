"""A user's project in JAX: flax.nnx and flax.linen."""

import jax
import jax.numpy as jnp
from flax import linen, nnx


class Image(nnx.Module):
    def __init__(self, rngs):
        self.zebra = nnx.Conv(3, 8, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.dense = nnx.Linear(8, 7, rngs=rngs)

    def __call__(self, x):
        x = self.drop(jax.nn.relu(self.norm(self.zebra(x))))
        return self.dense(x.mean((1, 2)))


class TwoInputs(nnx.Module):
    def __init__(self, rngs):
        self.dense = nnx.Linear(8, 16, rngs=rngs)
        self.tokens = nnx.Embed(50, 16, rngs=rngs)
        self.head = nnx.Linear(16, 5, rngs=rngs)

    def __call__(self, x, ids):
        return self.head(jax.nn.relu(self.dense(x)) + self.tokens(ids).mean(1))

    @staticmethod
    def example_inputs():
        return {"x": jnp.zeros((4, 8)), "ids": jnp.full((4, 6), 49)}


class Attention(linen.Module):
    @linen.compact
    def __call__(self, x, mask, train: bool):
        x = linen.Dense(16)(x)
        x = linen.BatchNorm(use_running_average=not train)(x)
        x = linen.Dropout(0.5, deterministic=not train)(x)
        x = linen.MultiHeadDotProductAttention(2, dropout_rate=0.5, deterministic=not train)(x)
        return linen.Dense(5, name="head")(x * mask[..., None])

    @staticmethod
    def example_inputs():
        return jnp.zeros((4, 6, 8)), jnp.zeros((4, 6), bool)


class Told(nnx.Module):
    """Computes something else in training, as its flag says."""

    def __init__(self, rngs):
        self.dense = nnx.Linear(8, 5, rngs=rngs)

    def __call__(self, x, deterministic: bool):
        return self.dense(x) * (1.0 if deterministic else 2.0)


class Scaled(linen.Module):
    """Its ``dropout_rate`` is no dropout."""

    dropout_rate: float = 0.5

    @linen.compact
    def __call__(self, x):
        return linen.Dense(5)(x) * self.dropout_rate

    @staticmethod
    def example_inputs():
        return jnp.zeros((4, 8))


def broken():
    raise KeyError("no such width")
