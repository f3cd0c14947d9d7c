"""The decoder in NumPy, without a cache: all positions at once give the same logits."""

from stele_worker.recipes.decoder.numpy import (
    LAYOUT,
    activations,
    inference_step,
    load,
    network,
    neutral,
    stored,
)

__all__ = ["LAYOUT", "activations", "inference_step", "load", "network", "neutral", "stored"]
