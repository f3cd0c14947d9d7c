"""The decoder of the task ``decoder``, token by token with a cache of keys and values: inference only.

A step gives the network the tokens of a sequence one after the other. Each position attends to the keys and values
that the cache holds of the positions before it. The result are the logits of the token after the last one, which the
task ``decoder`` computes in one pass. The tokens are given, not sampled, so that all frameworks do the same work.
Source: Radford et al., 2019; Pope et al., 2022, on the cache.
"""

from functools import partial

from stele_suite.tasks import decoder
from stele_suite.tasks.decoder import FACTOR, PARITY_SEED, PARITY_STEPS, SMALL, UNIT, example, units, weights

__all__ = ["FACTOR", "PARITY_SEED", "PARITY_STEPS", "UNIT", "example", "units", "weights"]

FRAMEWORKS = ("torch", "jax", "tensorflow", "keras", "paddle", "numpy")
PHASES = ("infer",)
SCALES = {
    "parity": decoder.SCALES["parity"],
    "smoke": dict(SMALL, length=16, test=4),
    "gate": {"hidden": 256, "heads": 4, "inner": 1024, "length": 32, "test": 50},
    "quick": {"hidden": 256, "heads": 4, "inner": 1024, "length": 32, "test": 12},
    "paper": {},
}
Task = partial(decoder.Task, name="generation", batch=1, length=128, train=0, test=50)
