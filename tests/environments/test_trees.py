"""The files of a repository and of a revision."""

import os
import subprocess

import pytest

from stele import git
from stele.environments import changes
from stele.environments.arms import Extras
from stele.errors import SteleError
from tests.support.repositories import ONE_NEW, ONE_OLD, find


def test_deleted_untracked_and_special_files_are_no_change(repository):
    folder = repository({"requirements.txt": ONE_OLD, "docs/requirements.txt": "sphinx\n"}, {})
    (folder / "docs/requirements.txt").unlink()
    (folder / "new-requirements.txt").write_text("torch==3\n")
    os.mkfifo(folder / "docs/requirements.txt")
    assert not (find(folder).pairs or find(folder).ungated)


def test_what_a_sparse_checkout_leaves_out_is_compared_and_not_deleted(repository):
    folder = repository({"requirements.txt": ONE_OLD, "docs/requirements.txt": "torch==1\n"}, {})
    for arguments in (["init"], ["set", "--no-cone", "/requirements.txt"]):
        subprocess.run(["git", "-C", folder, "sparse-checkout", *arguments], check=True, capture_output=True)
    assert not (folder / "docs").exists()
    found = find(folder)
    assert (found.ungated, found.files) == ([], ["docs/requirements.txt", "requirements.txt"])


def test_a_repository_without_a_working_tree_is_refused(repository, tmp_path):
    folder = repository({"requirements.txt": ONE_OLD}, {})
    subprocess.run(["git", "clone", "--quiet", "--bare", folder, tmp_path / "bare"], check=True)
    with pytest.raises(SteleError, match=r"bare has no working tree. git says: fatal"):
        find(tmp_path / "bare")


def test_a_link_is_followed_inside_of_the_repository_only(repository, tmp_path):
    (tmp_path / "outside.txt").write_text("torch==1\n")
    folder = repository({"a.txt": ONE_OLD, "b.txt": ONE_NEW}, {})
    (folder / "requirements.txt").symlink_to("a.txt")
    (folder / "outside-requirements.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "pins.txt").symlink_to("/dev/zero")
    repository({}, {})
    subprocess.run(["git", "-C", folder, "tag", "links"], check=True)
    (folder / "requirements.txt").unlink()
    (folder / "requirements.txt").symlink_to("b.txt")
    found = changes.find("links", folder, Extras(), whole_files=True)
    assert [pair.summary for pair in found.pairs] == ["jax 0.10.1 to 0.10.2 in requirements.txt"]
    assert (found.ungated, found.files) == ([], ["requirements.txt", "a.txt", "b.txt"])


def test_many_files_of_data_are_read_by_few_processes(repository, monkeypatch):
    data = {f"data/{index}.txt": "word\n" * 2000 + f"{index}\n" for index in range(300)}
    folder = repository({**data, "requirements.txt": ONE_OLD}, {name: text + "x\n" for name, text in data.items()})
    processes, run = [], git.run
    monkeypatch.setattr(git, "run", lambda *words, **options: processes.append(words) or run(*words, **options))
    assert find(folder).files == ["requirements.txt"]
    assert 0 < len(processes) < 30


def test_an_include_that_git_does_not_list_blocks(repository):
    old = {".gitignore": "pins/\n", "requirements.txt": "-r pins/a.txt\n", "b.txt": ONE_OLD}
    folder = repository(old, {"pins/a.txt": "numpy\n"})
    [line] = find(folder).ungated
    assert line.startswith("At revision 'main': requirements.txt, line 1") and find(folder).blocked


def test_a_link_that_leads_out_of_the_repository_blocks_if_it_changed(repository, tmp_path):
    folder = repository({"a.txt": ONE_OLD}, {})
    for version in ("1", "2"):
        (tmp_path / version).write_text(f"jax=={version}\n")
    (folder / "requirements.txt").symlink_to(tmp_path / "1")
    repository({}, {})
    subprocess.run(["git", "-C", folder, "tag", "links"], check=True)
    same = changes.find("links", folder, Extras(), whole_files=True)
    assert (same.ungated, same.files) == ([], ["a.txt"])
    assert f"not compared: requirements.txt is a link to {tmp_path / '1'}" in same.notes[0]
    (folder / "requirements.txt").unlink()
    (folder / "requirements.txt").symlink_to(tmp_path / "2")
    found = changes.find("links", folder, Extras(), whole_files=True)
    assert f"requirements.txt is a link to {tmp_path / '2'}" in found.ungated[0] and found.blocked
