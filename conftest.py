"""Gives the plugin's options and marker their short names in this repository: see ``fixtures.options``."""

from fixtures.options import pytest_addoption, pytest_collection_modifyitems, pytest_configure

__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]
