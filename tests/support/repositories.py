import subprocess

import pytest

from stele.environments import changes
from stele.environments.arms import Extras

OLD, NEW = "jax==0.10.1\njaxlib==0.10.1\n", "jax==0.10.2\njaxlib==0.10.2\n"
ONE_OLD, ONE_NEW = "jax==0.10.1\n", "jax==0.10.2\n"
CFG = "[options]\ninstall_requires =\n    numpy\n    "
SETUP = 'from setuptools import setup\nNEEDS = ["numpy"]\nsetup(name="x", install_requires=NEEDS + ["{}"])\n'
MEMBERS = (  # of a workspace, in a uv.lock
    '[[package]]\nname = "x"\nversion = "1"\nsource = { virtual = "." }\ndependencies = [{ name = "jax" }]\n'
    '[[package]]\nname = "y"\nversion = "1"\nsource = { editable = "b" }\ndependencies = [{ name = "jax" }]\n'
)
PROJECT = '[project]\nname = "x"\ndependencies = ["numpy", "{}"]\n'
LOCK = 'requires-python = ">=3.10"\n[[package]]\nname = "jax"\nversion = "{}"\n'
POETRY = LOCK.replace("requires-python", "content-hash").replace(">=3.10", "x") + (
    'groups = ["main"]\n[metadata]\npython-versions = ">=3.10"\n'
)
PEP_751 = 'lock-version = "1.0"\ncreated-by = "a test"\n'
JAX_OF_PEP_751 = (
    '[[packages]]\nname = "jax"\nversion = "{}"\n'
    'sdist = { url = "https://example.org/jax-{}.tar.gz", hashes = { sha256 = "00" } }\n'
)


@pytest.fixture
def repository(tmp_path):
    """repository(old={...}, new={...}) -> a repository whose working tree has the files of new; None deletes one."""
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*arguments):
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)

    def write(files):
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        git("add", "--all")

    def repository(old, new):
        git("init", "--quiet", "--initial-branch=main")
        write(old)
        git("commit", "--quiet", "--allow-empty", "--message=Old")
        write(new)
        return folder

    return repository


def find(folder, *, whole_files=True, **extras):
    return changes.find("main", folder, Extras(**extras), whole_files=whole_files)


JAXLIB = '[[package]]\nname = "jaxlib"\nversion = "{}"\n'
UV_LOCK = """version = 1
requires-python = ">=3.10"
[[package]]
name = "x"
version = "1"
source = {{ virtual = "." }}
dependencies = [{{ name = "jax" }}]
[[package]]
name = "jax"
version = "0.10.1"
source = {{ {source} }}
{files}
"""
SHA = "0123456789abcdef0123456789abcdef01234567"


def uv_lock(source='registry = "https://pypi.org/simple"', digest="aa"):
    return UV_LOCK.format(source=source, files=f'wheels = [{{ url = "https://x/jax.whl", hash = "sha256:{digest}" }}]')
