"""Submodules that changed."""

import subprocess

import pytest

from tests.support.repositories import ONE_NEW, ONE_OLD, find


@pytest.mark.parametrize(
    ("name", "old", "new", "blocked"),
    [("requirements.txt", ONE_OLD, ONE_NEW, True), ("pyproject.toml", "[project]\n", "[tool]\n", False)],
)
def test_a_submodule_that_changed_blocks_if_a_file_of_packages_in_it_names_a_framework(
    repository, tmp_path, name, old, new, blocked
):
    folder = repository({"requirements.txt": ONE_OLD}, {})

    def git(*arguments):
        options = ["-c", "user.name=Ada", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"]
        subprocess.run(["git", *options, *arguments], check=True, capture_output=True)

    other = tmp_path / "other"
    git("init", "--quiet", str(other))
    (other / name).write_text(old)
    git("-C", str(other), "add", "--all")
    git("-C", str(other), "commit", "--quiet", "--message=One")
    git("-C", str(folder), "submodule", "--quiet", "add", str(other), "libs/other")
    git("-C", str(folder), "commit", "--quiet", "--message=Sub")
    assert not (find(folder).ungated or find(folder).notes)
    (folder / "libs/other" / name).write_text(new)
    git("-C", str(folder / "libs/other"), "commit", "--quiet", "--all", "--message=Two")
    git("-C", str(folder), "add", "--all")
    found = find(folder)
    assert found.blocked is blocked
    assert f"libs/other/{name} changed" in (found.ungated if blocked else found.notes)[0]
    git("-C", str(folder), "submodule", "--quiet", "deinit", "--force", "libs/other")
    assert find(folder).blocked and "its files cannot be compared" in find(folder).ungated[0]
