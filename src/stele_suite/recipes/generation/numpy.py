"""The decoder in NumPy, without a cache: all positions at once give the same logits."""

from stele_suite.recipes.decoder.numpy import Recipe

__all__ = ["Recipe"]
