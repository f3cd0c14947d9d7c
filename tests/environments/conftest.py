"""The repository of tests.support.repositories is a fixture here. Each test has a cache of its own."""

import pytest

from stele import environments
from tests.support.repositories import repository

__all__ = ["clear_cache", "repository"]


@pytest.fixture(autouse=True)
def clear_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    environments.described.cache_clear()
    yield
    environments.described.cache_clear()
