"""The profiles of tests.support.profiles are fixtures here."""

from tests.support.profiles import explain

__all__ = ["explain"]
