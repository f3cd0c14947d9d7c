"""The names of files and packages."""

import pytest

from stele.environments import lockfiles
from stele.environments.lockfiles import read
from tests.support.lock_files import read_sample


@pytest.mark.parametrize(
    ("sample", "name"),
    [
        ("uv.lock", "old.lock"),
        ("poetry.lock", "old.lock"),
        ("pdm.lock", "old.lock"),
        ("Pipfile.lock", "old.lock"),
        ("constraints.txt", "old.lock"),
        ("pylock.toml", "pylock.gpu.toml"),
        ("pyproject.toml", "old.toml"),
        ("environment.yml", "cluster.yaml"),
    ],
)
def test_the_content_decides_if_the_name_does_not(sample, name):
    assert read(name, read_sample(sample)) == read(sample, read_sample(sample))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("requirements.txt", True),
        ("requirements.in@main", True),
        ("setup.cfg", True),
        ("setup.py@main", True),
        ("net.py@main", False),
        ("deps/uv.lock", True),
        ("pylock.gpu.toml", True),
        ("environment.yaml", True),
        ("uv.lock@main", True),
        ("requirements.txt@HEAD~1", True),
        ("a@b/uv.lock", True),
        ("jax==0.9.2", False),
        ("torch==2.5.1.lock", False),
        ("keras-jax@keras==3.14.1", False),
        ("torch@/opt/venv/bin/python3.12", False),
        ("/opt/venv", False),
        ("torch", False),
    ],
)
def test_a_lock_file_is_recognized_by_its_name(text, expected):
    assert lockfiles.is_lockfile(text) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("uv.lock", True),
        ("a/dev-requirements.txt", True),
        ("requirements_gpu.txt", True),
        ("requirements/base.txt", True),
        ("Requirements.txt", True),
        ("a/b/c/d/requirements.in", True),
        ("setup.cfg", True),
        ("environment-gpu.yml", True),
        ("pylock.gpu.toml", True),
        ("notes.txt", False),
        ("mkdocs.yml", False),
        ("tests/jax.lock", False),
    ],
)
def test_only_conventional_names_are_taken_for_the_packages_of_a_repository(path, expected):
    assert lockfiles.is_conventional(path) is expected
