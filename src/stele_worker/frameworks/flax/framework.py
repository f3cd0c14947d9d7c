"""Flax: modules of nnx with the optimisers of optax, on JAX."""

import flax
import optax

from stele_worker.frameworks.jax import framework as jax


class Framework(jax.Framework):
    MODES = ("jit",)
    PARALLEL = STATISTICS = None

    def versions(self):
        return dict(super().versions(), flax=flax.__version__, optax=optax.__version__)
