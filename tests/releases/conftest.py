"""The releases of tests.support.histories are fixtures here."""

from tests.support.histories import abacus, environment, machine, serve

__all__ = ["abacus", "environment", "machine", "serve"]
