"""Fixtures of tests.support."""

from tests.support.user_projects import project

__all__ = ["project"]
