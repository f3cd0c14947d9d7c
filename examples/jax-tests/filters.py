"""Filters of signals, in JAX."""

import jax
import jax.numpy as jnp


@jax.jit
def smooth(signal, weight=0.9):
    """Return the exponential moving average of a signal, shape (time, channels)."""

    def step(average, sample):
        average = weight * average + (1 - weight) * sample
        return average, average

    return jax.lax.scan(step, signal[0], signal)[1]


@jax.jit
def spectrum(signal):
    """Return the power of each frequency, averaged over the channels, shape (frequencies,)."""
    return (jnp.abs(jnp.fft.rfft(signal, axis=0)) ** 2).mean(axis=1)


@jax.jit
def whiten(signal):
    """Return the signal with uncorrelated channels of variance 1."""
    centred = signal - signal.mean(axis=0)
    values, vectors = jnp.linalg.eigh(centred.T @ centred / len(signal))
    return centred @ vectors / jnp.sqrt(values)
