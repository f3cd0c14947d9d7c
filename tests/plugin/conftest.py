"""Fixtures of tests.support."""

from tests.support.suites import cache, repository, suite
from tests.support.user_projects import project

__all__ = ["cache", "project", "repository", "suite"]
