"""jax-ml/jax#25190: a loop of tiny operations became many times slower with JAX 0.4.33."""

import jax
from jax import lax
from jax import numpy as jnp

COUNT = 2**16


@jax.jit
def last_index(values):
    """Return the index after the first value that is the largest, found one value after the other."""
    largest = values.max()

    def next_index(state):
        seen, index = state
        return jnp.maximum(seen, values[index]), index + 1

    return lax.while_loop(lambda state: state[0] < largest, next_index, (values[0] - 1, 0))[1]


def example_inputs():
    return jnp.arange(COUNT)
