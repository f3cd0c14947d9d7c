"""What is installed, and from where: hashes, commits, the offline cache, and builds that only this user can enter."""

import dataclasses
import functools
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading

import pytest

from stele import __main__ as entry_point
from stele import environments
from stele.environments import builds, installer
from stele.environments.environment import Environment
from stele.errors import SteleError
from tests.support.wheels import use_alone, wheel

HERE = f"=={sys.version_info.major}.{sys.version_info.minor}.*"
LOCKS = sorted(environments.FOLDER.glob("*.lock"))


@pytest.fixture(scope="module")
def uv_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("uv")


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path, uv_cache):
    """Give each test a separate cache, and an index that is a folder of wheels."""
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    use_alone(monkeypatch, tmp_path / "wheels", uv_cache)
    (tmp_path / "wheels").mkdir()


def locked(tmp_path, content, imports=("toy",)):
    """Return an environment with this lock file."""
    lock = tmp_path / "toy.lock"
    lock.write_text(content)
    return Environment("toy", "Toy", "toy", imports=imports, python=HERE, requirements={"toy": ""}, lock=lock)


def hashed(file, name="toy", version="1.0"):
    """Return the line of a lock file for a package in a file."""
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"


@pytest.mark.parametrize("path", [*LOCKS, environments.FOLDER / builds.BUILD_TOOLS], ids=lambda path: path.name)
def test_every_package_of_a_built_in_environment_has_a_hash(path):
    lines = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", path.read_text(), flags=re.M)).splitlines()
    assert lines and all(re.search(r"^\S+==\S.* --hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_a_package_without_a_hash_is_not_installed(tmp_path):
    wheel(tmp_path / "wheels", "toy", "1.0")
    with pytest.raises(SteleError, match="a package has no hash, so it cannot be verified"):
        builds.make(locked(tmp_path, "toy==1.0\n"))


def test_the_requirements_that_a_user_types_are_locked_with_hashes(tmp_path, monkeypatch):
    wheel(tmp_path / "wheels", "toy", "1.0")
    environment = locked(tmp_path, "")
    environment.lock.unlink()
    builds.lock(environment, builds.require_interpreter(environment))
    assert re.fullmatch(r"toy==1\.0 \\\n    --hash=sha256:[0-9a-f]{64}\n", environment.lock.read_text())


BACKEND = """
import shutil
def build_wheel(folder, config_settings=None, metadata_directory=None):
    return shutil.copy("toy-1.0-py3-none-any.whl", folder).rpartition("/")[2]
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


@pytest.fixture
def repository(tmp_path):
    """Return the URL of a Git repository with the package toy, which builds without any other package."""
    folder = tmp_path / "repository"
    wheel(folder, "toy", "1.0")
    (folder / "backend.py").write_text(BACKEND)
    (folder / "pyproject.toml").write_text(PROJECT + '[project]\nname = "toy"\nversion = "1.0"\n')
    user = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], [*user, "commit", "-qm", "toy"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return f"git+{folder.as_uri()}"


def test_a_commit_of_a_repository_is_installed_beside_packages_with_hashes(tmp_path, repository):
    wheel(tmp_path / "wheels", "other", "1.0")
    environment = locked(tmp_path, "", imports=("toy", "other"))
    environment.lock.unlink()
    environment.requirements.clear()
    environment.requirements.update({f"toy @ {repository}": "", "other": ""})
    assert builds.make(environment)
    assert builds.COMMIT.search(environment.lock.read_text())


def test_a_branch_of_a_repository_is_not_installed(tmp_path, repository):
    with pytest.raises(SteleError, match="a package has no hash, so it cannot be verified"):
        builds.make(locked(tmp_path, f"toy @ {repository}@main\n"))


def source_distribution(tmp_path, tool="tool"):
    """Write a source distribution of toy that is built with the package ``tool``."""
    folder = tmp_path / "toy-1.0"
    wheel(folder, "toy", "1.0")
    (folder / "pyproject.toml").write_text(f'[build-system]\nrequires = ["{tool}"]\nbuild-backend = "tool"\n')
    (folder / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    path = tmp_path / "wheels" / "toy-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, "toy-1.0")
    return path


def test_the_packages_that_build_a_source_distribution_must_have_their_hashes(tmp_path):
    environment = locked(tmp_path, hashed(source_distribution(tmp_path)))
    wheel(tmp_path / "wheels", "tool", "1.0", BACKEND)
    tools = tmp_path / builds.BUILD_TOOLS
    tools.write_text(f"tool==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(SteleError, match="the hash of a package differs from the lock file"):
        builds.make(environment)
    tools.write_text(hashed(tmp_path / "wheels" / "tool-1.0-py3-none-any.whl", "tool"))
    assert builds.make(environment)


@pytest.fixture
def typed(tmp_path):
    """Return an environment of requirements that a user types: toy, which is a source distribution that needs tool."""
    source_distribution(tmp_path)
    wheel(tmp_path / "wheels", "tool", "1.0", BACKEND)
    lock = builds.locks_folder() / "toy.lock"
    return dataclasses.replace(locked(tmp_path, ""), lock=lock)


def test_typed_requirements_are_not_built_with_a_package_without_a_hash(typed):
    with pytest.raises(SteleError, match="a source distribution needs a package to build it") as caught:
        builds.make(typed)
    assert "toy==1.0" in str(caught.value) and "`tool`" in str(caught.value)
    assert "UV_BUILD_CONSTRAINT" in str(caught.value)
    assert not isinstance(caught.value, installer.Unsolvable)  # another attempt succeeds with more hashes
    assert not typed.lock.exists()


def test_a_locked_source_distribution_is_not_built_with_a_package_without_a_hash(tmp_path, typed, monkeypatch):
    typed.lock.parent.mkdir(parents=True)
    typed.lock.write_text(hashed(tmp_path / "wheels" / "toy-1.0.tar.gz"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    with pytest.raises(SteleError, match="no trusted hash was provided for: `tool`"):
        builds.make(typed)


def test_a_commit_of_a_repository_is_not_built_with_a_package_without_a_hash(tmp_path, typed, repository):
    folder = tmp_path / "repository"
    shutil.copy(tmp_path / "toy-1.0" / "pyproject.toml", folder)
    user = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    subprocess.run(["git", *user, "commit", "-qam", "with tool"], cwd=folder, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True)
    typed.lock.parent.mkdir(parents=True)
    typed.lock.write_text(f"toy @ {repository}@{head.stdout.strip()}\n")
    with pytest.raises(SteleError, match="no trusted hash was provided for: `tool`"):
        builds.make(typed)


def test_typed_requirements_are_built_with_packages_of_which_the_user_has_hashes(tmp_path, typed, monkeypatch):
    tools = tmp_path / "tools.txt"
    monkeypatch.setenv("UV_BUILD_CONSTRAINT", str(tools))
    tools.write_text("tool==1.0\n")
    with pytest.raises(SteleError, match="no trusted hash was provided for: `tool`"):
        builds.make(typed)
    tools.write_text(hashed(tmp_path / "wheels" / "tool-1.0-py3-none-any.whl", "tool"))
    assert builds.make(typed)


@pytest.mark.parametrize("tool", ["flit-core", "hatchling", "pdm-backend", "poetry-core", "setuptools"])
def test_a_usual_package_builds_source_distributions_at_the_version_of_which_stele_has_hashes(tmp_path, typed, tool):
    source_distribution(tmp_path, tool)
    wheel(tmp_path / "wheels", tool.replace("-", "_"), "0.1")
    with pytest.raises(SteleError, match=rf"there is no version of {tool}==[1-9]"):
        builds.make(typed)


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Serve the folder of wheels by HTTP; return a function that stops the server."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "wheels"))
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("UV_FIND_LINKS", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")

    def stop():
        server.shutdown()
        server.server_close()

    yield stop
    stop()


@pytest.fixture
def described(tmp_path, monkeypatch):
    """Return the name of an environment that the command line knows."""
    monkeypatch.setenv("STELE_ENVIRONMENTS", str(tmp_path))
    facts = f'label = "Toy"\nframework = "toy"\nimports = ["toy"]\npython = "{HERE}"\n[requirements]\n"toy" = ""\n'
    (tmp_path / "toy.toml").write_text(facts)
    environments.described.cache_clear()
    yield "toy"
    environments.described.cache_clear()


def test_an_environment_is_built_offline_from_the_cache(tmp_path, served, described, capsys):
    wheel(tmp_path / "wheels", "toy", "1.0")
    assert entry_point.main(["env", "make", described]) == 0
    assert entry_point.main(["env", "remove", described]) == 0
    served()
    assert entry_point.main(["env", "make", described, "--offline"]) == 0
    assert "toy: built" in capsys.readouterr().out


def test_a_package_that_is_not_in_the_cache_is_named_offline(tmp_path, served, described, capsys):
    wheel(tmp_path / "wheels", "toy", "1.0")
    assert entry_point.main(["env", "make", described, "--offline"]) == 2
    errors = capsys.readouterr().err
    assert "a package is not in uv's cache, and the network is disabled" in errors
    assert "toy" in errors


def test_only_this_user_can_enter_the_cache_and_its_builds(tmp_path):
    path = tmp_path / "wheels" / "toy-1.0-py3-none-any.whl"
    wheel(path.parent, "toy", "1.0")
    environment, before = locked(tmp_path, hashed(path)), os.umask(0)
    try:
        builds.make(environment)
    finally:
        os.umask(before)
    build = builds.folder(environment)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "cache", build.parent, build)} == {0o700}
