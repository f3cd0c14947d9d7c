"""jax-ml/jax#36799: a scan that carries a 3 by 3 matrix in float64 became ten times slower with JAX 0.4.33."""

import jax
from jax import lax
from jax import numpy as jnp

jax.config.update("jax_enable_x64", True)
STEPS = 2000


@jax.jit
def variances(measurements):
    """Return the variance of each measurement under a Kalman filter of position, speed and acceleration."""
    motion = jnp.eye(3) + 0.1 * jnp.eye(3, k=1)

    def step(covariance, noise):
        predicted = motion @ covariance @ motion.T + 0.01 * jnp.eye(3)
        variance = predicted[0, 0] + noise
        gain = predicted[:, 0] / variance
        return predicted - jnp.outer(gain, predicted[0]), variance

    return lax.scan(step, jnp.eye(3), measurements)[1]


def example_inputs():
    return 0.5 + jnp.arange(STEPS) / STEPS
