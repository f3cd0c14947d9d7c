"""JAX has no layers, so defaults of layers come from jax.nn.initializers."""

import inspect
import os

import jax
import jax.numpy as jnp

from stele_worker.defaults import distribution


def table():
    key = jax.random.key(0)
    glorot, he = jax.nn.initializers.glorot_uniform(), jax.nn.initializers.he_normal()
    variance = inspect.signature(jax.nn.initializers.variance_scaling).parameters
    donated = inspect.signature(jax.jit).parameters["donate_argnums"].default
    return {
        "glorot_uniform": distribution(glorot(key, (1000, 1000)), 1000),
        "he_normal": distribution(he(key, (1000, 1000)), 1000),
        "variance_scaling axes": "{}, {}".format(variance["in_axis"].default, variance["out_axis"].default),
        "random numbers": setting("jax_default_prng_impl"),
        "random numbers, partitionable": setting("jax_threefry_partitionable"),
        "float32 products": setting("jax_default_matmul_precision"),
        "64 bit": setting("jax_enable_x64"),
        "default dtype": jnp.zeros(1).dtype,
        "default integer": jnp.arange(1).dtype,
        "promotion": setting("jax_numpy_dtype_promotion"),
        "int32 + float32": (jnp.zeros(1, jnp.int32) + jnp.zeros(1, jnp.float32)).dtype,
        "int32 + float16": (jnp.zeros(1, jnp.int32) + jnp.zeros(1, jnp.float16)).dtype,
        "float16 + bfloat16": (jnp.zeros(1, jnp.float16) + jnp.zeros(1, jnp.bfloat16)).dtype,
        "1 / 2 of int32": (jnp.ones(1, jnp.int32) / 2).dtype,
        "rank promotion": setting("jax_numpy_rank_promotion"),
        "donated arguments": donated,
        "compilation cache": setting("jax_compilation_cache_dir"),
        "compile": "each operation by itself; all of a function under jax.jit",
        "asynchronous dispatch on CPU": setting("jax_cpu_enable_async_dispatch"),
        "XLA_FLAGS": os.environ.get("XLA_FLAGS"),
        "preallocate GPU memory": os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "true"),
    }


def setting(name):
    return getattr(jax.config, name, None)  # not every release has every setting
