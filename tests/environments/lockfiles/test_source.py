"""Packages from URLs, folders and indexes."""

import pytest

from stele.environments.lockfiles import read
from stele.errors import SteleError
from tests.support.lock_files import PEP_751


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "git+https://example.org/x@v1#egg=x", "x@ git+https://example.org/x@v1#egg=x"),
        ("a.txt", "https://example.org/x-1-py3-none-any.whl", "x@ https://example.org/x-1-py3-none-any.whl"),
        (
            "uv.lock",
            '[[package]]\nname = "x"\nversion = "1"\nsource = { git = "https://example.org/x?rev=v1#abc" }',
            "x@ git+https://example.org/x@abc",
        ),
        (
            "poetry.lock",
            '[[package]]\nname = "x"\nversion = "1"\n[package.source]\ntype = "git"\n'
            'url = "https://example.org/x"\nresolved_reference = "abc"',
            "x@ git+https://example.org/x@abc",
        ),
        (
            "pdm.lock",
            '[[package]]\nname = "x"\nversion = "1"\ngit = "https://example.org/x"\nrevision = "abc"',
            "x@ git+https://example.org/x@abc",
        ),
        (
            "pylock.toml",
            PEP_751
            + '[[packages]]\nname = "x"\nvcs = { type = "git", url = "https://example.org/x", commit-id = "abc" }',
            "x@ git+https://example.org/x@abc",
        ),
        (
            "Pipfile.lock",
            '{"default": {"x": {"git": "https://example.org/x", "ref": "abc"}}}',
            "x@ git+https://example.org/x@abc",
        ),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\nx = { git = "https://example.org/x", tag = "v1" }',
            "x@ git+https://example.org/x@v1",
        ),
    ],
)
def test_a_package_from_a_url_needs_permission(name, content, expected):
    locked = read(name, content, allow_vcs=True)
    assert [line.replace(" @ ", "@ ") for line in locked.requirements] == [expected]
    with pytest.raises(SteleError, match="--allow-vcs"):
        read(name, content)


def test_hashes_and_indexes_are_noted_if_every_file_has_a_hash():
    text = (
        '[[package]]\nname = "torch"\nversion = "2.5.1+cpu"\nsource = { registry = "https://x/whl/cpu/" }\n'
        'wheels = [{ url = "https://x/a.whl", hash = "sha256:a" }, { url = "https://x/b.whl"HASH }]\n'
    )
    locked = read("uv.lock", text.replace("HASH", ', hash = "sha256:b"'))
    assert locked.hashes == {"torch": {"sha256:a", "sha256:b"}}
    assert locked.registries == {"torch": {"https://x/whl/cpu"}}
    assert locked.options == ("--extra-index-url https://x/whl/cpu/",)
    assert read("uv.lock", text.replace("HASH", "")).hashes == {}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("git+https://github.com/openai/CLIP.git", "clip"),
        ("git+https://github.com/openai/CLIP.git@v1#subdirectory=x", "clip"),
        ("git+ssh://git@github.com/pytorch/pytorch@release/2.5 ; os_name == 'posix'", "torch"),
        ("git+https://example.org/a/b/my_layers/", "my-layers"),
        ("-e git+https://github.com/jax-ml/jax@main", "jax"),
        ("--editable=git+https://example.org/x#egg=torch", "torch"),
    ],
)
def test_a_repository_has_the_name_of_its_package(line, name):
    locked = read("a.txt", f"{line}\n", allow_vcs=True, skip_local=True)
    assert [requirement.partition(" ")[0] for requirement in locked.requirements] == [name]
    with pytest.raises(SteleError, match=r"is installed from a URL. Pass --allow-vcs"):
        read("a.txt", f"{line}\n", skip_local=True)


def test_packages_in_local_folders_are_left_out_of_a_project_with_a_message():
    project = (
        '[project]\ndependencies = ["numpy", "mine", "yours"]\n'
        "[tool.uv.sources]\nmine = { workspace = true }\nyours = { path = 'y' }\n"
    )
    locked = read("pyproject.toml", project)
    assert locked.requirements == ("numpy",)
    assert [message.split(" ")[1] for message in locked.messages] == ["'mine'", "'yours'"]


def test_a_source_with_a_marker_or_an_extra_counts_where_it_holds():
    project = (
        '[project]\ndependencies = ["jax[k8s]>=0.9; python_version >= \'3\'", "torch"]\n'
        "[project.optional-dependencies]\na = []\n[tool.uv.sources]\n"
        "jax = [{ git = 'https://x/jax', tag = 'v1', marker = \"os_name == 'posix'\" }]\n"
        "torch = [{ url = 'https://x/torch.tar.gz', extra = 'a' }, { git = 'https://x/y', group = 'dev' }]\n"
    )
    locked = read("pyproject.toml", project, allow_vcs=True)
    assert locked.requirements == (
        'jax[k8s] @ git+https://x/jax@v1 ; python_version >= "3" and os_name == "posix"',
        'jax[k8s]>=0.9; python_version >= "3"',
        "torch",
    )
    selected = read("pyproject.toml", project, allow_vcs=True, extras=["a"])
    assert selected.requirements[-1] == "torch @ https://x/torch.tar.gz"
