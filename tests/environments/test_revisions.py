"""FILE@REVISION: files of earlier revisions, and which programs git starts to read them: none."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stele.environments import revisions
from stele.environments.revisions import read, show, split
from stele.environments.trees import trees_of
from stele.errors import SteleError

IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")


def git(folder, *arguments):
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *IDENTITY, *arguments]
    subprocess.run(command, check=True, capture_output=True, env=variables)


def commit(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Change")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with torch 2.4.1 in the revision v1.0, and torch 2.5.1 in main and in the working tree."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet")
    commit(folder, {"requirements.txt": "-r base.txt\ntorch==2.4.1\n", "base.txt": "numpy==1.26.4\n"})
    git(folder, "tag", "v1.0")
    commit(folder, {"requirements.txt": "-r base.txt\ntorch==2.5.1\n", "base.txt": "numpy==2.1.3\n"})
    monkeypatch.chdir(folder)
    return folder


def test_a_revision_has_its_text_of_the_file_and_of_the_files_it_includes(project):
    assert show(Path("requirements.txt"), "v1.0") == "-r base.txt\ntorch==2.4.1\n"
    assert read("requirements.txt@v1.0").requirements == ("numpy==1.26.4", "torch==2.4.1")
    assert read("requirements.txt").requirements == ("numpy==2.1.3", "torch==2.5.1")


def test_uncommitted_changes_belong_to_the_working_tree_only(project):
    Path("requirements.txt").write_text("torch==2.6.0\n")
    assert read("requirements.txt").requirements == ("torch==2.6.0",)
    assert "torch==2.5.1" in read("requirements.txt@HEAD").requirements


def test_a_file_can_be_named_from_a_different_folder(project, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "torch==2.4.1" in read("project/requirements.txt@v1.0").requirements
    assert "torch==2.4.1" in read(f"{project}/requirements.txt@v1.0").requirements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("requirements.txt", ("requirements.txt", None)),
        ("requirements.txt@v1.0", ("requirements.txt", "v1.0")),
        ("requirements.txt@HEAD~1", ("requirements.txt", "HEAD~1")),
        ("requirements.txt@HEAD@{0}", ("requirements.txt", "HEAD@{0}")),
        ("requirements.txt@no-such", ("requirements.txt", "no-such")),
        ("absent.txt@no-such", ("absent.txt", "no-such")),
        ("absent.txt", ("absent.txt", None)),
        ("gone/uv.lock@v0", ("gone/uv.lock", "v0")),
        ("gone/packages@v0", ("gone/packages", "v0")),
        ("a@b.txt", ("a@b.txt", None)),
        ("a@b.txt@v0", ("a@b.txt", "v0")),
        ("requirements.txt@", ("requirements.txt@", None)),
        ("@v1.0", ("@v1.0", None)),
    ],
)
def test_the_last_at_sign_after_an_existing_file_begins_the_revision(project, text, expected):
    commit(project, {"gone/uv.lock": "version = 1", "gone/packages": "", "a@b.txt": "torch==2.4.1"})
    git(project, "tag", "v0")
    git(project, "rm", "-r", "--quiet", "gone")
    assert split(text) == (Path(expected[0]), expected[1])


def test_a_file_that_was_deleted_with_its_folder_is_read_from_the_revision(project):
    commit(project, {"gone/requirements.txt": "torch==2.4.1"})
    git(project, "rm", "-r", "--quiet", "gone")
    assert read("gone/requirements.txt@HEAD").requirements == ("torch==2.4.1",)


def test_a_link_is_followed(project):
    Path("link.txt").symlink_to("requirements.txt")
    assert "torch==2.4.1" in read("link.txt@v1.0").requirements


def relink(link, target):
    Path(link).unlink(missing_ok=True)
    Path(link).symlink_to(target)


def test_a_link_of_a_revision_leads_where_it_led_in_that_revision(project):
    Path("requirements.txt").unlink()
    relink("requirements.txt", "reqs/a.txt")
    commit(project, {"reqs/a.txt": "jax==0.10.1\n", "reqs/b.txt": "jax==0.10.2\n"})
    relink("requirements.txt", "reqs/b.txt")
    assert read("requirements.txt@HEAD").requirements == ("jax==0.10.1",)
    assert read("requirements.txt").requirements == ("jax==0.10.2",)
    assert "torch==2.4.1" in read("requirements.txt@v1.0").requirements


@pytest.mark.parametrize("now", ["reqs/b", "/nowhere", None])
def test_a_link_to_a_folder_leads_where_it_led_in_that_revision(project, now):
    relink("deps", "reqs/a")
    files = {
        "reqs/a/one.txt": "-r more/two.txt\n",
        "reqs/b/one.txt": "jax==2\n",
        "reqs/a/more/two.txt": "jax==1\n",
    }
    commit(project, files)
    if now is None:
        Path("deps").unlink()
        commit(project, {"deps/one.txt": "jax==3\n"})
    else:
        relink("deps", now)
    assert read(f"deps/one.txt@HEAD{'~1' if now is None else ''}").requirements == ("jax==1",)


def test_a_link_to_the_repository_from_elsewhere_is_followed(project, tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    git(tmp_path / "home", "init", "--quiet")
    commit(tmp_path / "home", {"notes": ""})
    monkeypatch.chdir(tmp_path / "home")
    relink("work", project)
    commit(project, {"deps/requirements.txt": "jax==1\n"})
    relink("deps", project / "deps")
    assert "torch==2.4.1" in read("work/requirements.txt@v1.0").requirements
    assert read("deps/requirements.txt@main").requirements == ("jax==1",)


def test_a_link_that_the_revision_does_not_have_is_no_file_of_it(project):
    relink("deps.txt", "requirements.txt")
    git(project, "add", "--all")
    with pytest.raises(SteleError, match=r"deps.txt does not exist in revision 'v1.0'"):
        show(Path("deps.txt"), "v1.0")


def test_links_that_lead_to_each_other_are_no_file(project):
    relink("a.txt", "b.txt")
    relink("b.txt", "a.txt")
    commit(project, {})
    with pytest.raises(SteleError, match=r"a.txt does not exist in revision 'HEAD'"):
        show(Path("a.txt"), "HEAD")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_text_as_powershell_writes_it_is_read(tmp_path, encoding):
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.5.1\n", encoding=encoding)
    assert read(str(path)).requirements == ("torch==2.5.1",)


def test_variables_of_a_hook_do_not_select_a_different_repository(project, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert "torch==2.4.1" in show(Path("requirements.txt"), "v1.0")


@pytest.mark.parametrize("revision", ["-p", "--output=stolen", "", "a\nb", "main\0"])
def test_a_revision_that_git_could_take_for_an_option_is_refused(project, revision):
    with pytest.raises(SteleError, match="is not a revision"):
        show(Path("requirements.txt"), revision)
    assert not Path("stolen").exists()


@pytest.mark.parametrize(("revision", "similar"), [("v1.O", "v1.0"), ("mian", "main"), ("topic", "origin/topic")])
def test_an_unknown_revision_is_refused_with_similar_names(project, revision, similar):
    git(project, "update-ref", "refs/remotes/origin/topic", "HEAD")
    with pytest.raises(SteleError, match=f"Unknown revision '{revision}' in .*'{similar}'"):
        read(f"requirements.txt@{revision}")


def test_an_unknown_revision_without_a_similar_name_says_how_to_list_them(project):
    with pytest.raises(SteleError, match=r"git branch --all; git tag$"):
        show(Path("requirements.txt"), "0123456789")


def test_in_a_shallow_clone_the_error_says_how_to_fetch_the_revision(project, tmp_path):
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth", "1", project.as_uri(), str(clone))
    with pytest.raises(SteleError, match="git fetch --depth 1 origin release-7"):
        show(clone / "requirements.txt", "release-7")


def test_a_file_that_is_not_in_the_revision_is_refused(project):
    with pytest.raises(SteleError, match=r"absent.txt does not exist in revision 'v1.0'"):
        show(Path("absent.txt"), "v1.0")


def test_outside_a_repository_a_revision_is_refused(tmp_path):
    with pytest.raises(SteleError, match="is not in a Git repository that can be read. git says: fatal"):
        show(tmp_path / "requirements.txt", "main")


def test_without_git_the_error_says_so(project, monkeypatch):
    monkeypatch.setenv("PATH", str(project))
    with pytest.raises(SteleError, match="git is not on PATH"):
        show(Path("requirements.txt"), "main")


def test_a_git_that_hangs_is_ended(project, monkeypatch, tmp_path):
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("stele.git.TIMEOUT", 0.2)
    with pytest.raises(SteleError, match="git did not answer within 0.2 s"):
        show(Path("requirements.txt"), "main")


@pytest.mark.parametrize("text", ["absent.txt", "folder.txt"])
def test_a_file_that_cannot_be_read_is_refused(project, text):
    Path("folder.txt").mkdir()
    with pytest.raises(SteleError, match=f"^{text} (cannot be read: |is a folder)"):
        read(text)


def test_a_file_that_is_not_text_is_refused(project):
    Path("binary.txt").write_bytes(b"torch\xff\xfe")
    with pytest.raises(SteleError, match=r"^binary.txt is not text in UTF-8"):
        read("binary.txt")


def test_an_error_in_an_earlier_revision_names_the_revision(project):
    commit(project, {"old.txt": "-e .\n"})
    with pytest.raises(SteleError, match=r"^At revision 'HEAD': old.txt, line 1: '-e .'"):
        read("old.txt@HEAD")


def test_git_starts_no_program_that_the_repository_names(project, tmp_path):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'started'}\n")
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "fsmonitor-watchman", "post-checkout"):
        (hooks / hook).symlink_to(program)
    Path(".gitattributes").write_text("* filter=own diff=own\n")
    settings = (
        "core.fsmonitor",
        "diff.external",
        "diff.own.textconv",
        "filter.own.clean",
        "filter.own.smudge",
    )
    for name in (*settings, "core.sshCommand", "core.pager"):
        git(project, "config", name, str(program))
    git(project, "config", "core.hooksPath", str(hooks))
    Path("requirements.txt").write_text("torch==2.6.0\n")
    assert "torch==2.4.1" in read("requirements.txt@v1.0").requirements
    old, new = trees_of(project, "v1.0", re.compile("torch"))
    assert "torch==2.4.1" in old.texts["requirements.txt"] and "torch==2.6.0" in new.texts["requirements.txt"]
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("user.name", "Ada", "file:git:http:https:ssh"),
        ("core.sshCommand", "touch started", "none"),
        ("credential.helper", "!touch started", "none"),
        ("credential.https://example.org.helper", "!touch started", "none"),
        ("remote.origin.uploadpack", "touch started", "none"),
    ],
)
def test_a_partial_clone_downloads_nothing_with_a_program_that_the_repository_names(
    project, tmp_path, monkeypatch, name, value, allowed
):
    git(project, "config", name, value)
    real = shutil.which("git")
    (tmp_path / "git").write_text(f'#!/bin/sh\necho "$GIT_ALLOW_PROTOCOL" > {tmp_path}/allowed\nexec {real} "$@"\n')
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    show(Path("requirements.txt"), "v1.0")
    assert (tmp_path / "allowed").read_text().strip() == allowed


def test_the_configuration_of_the_user_in_variables_stays(project, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")
    process = revisions.run_git(project, "config", "--get", "safe.directory")
    assert process.stdout == b"*\n"


def test_a_folder_of_wheels_is_read_from_the_working_tree_also_for_a_revision(project):
    commit(project, {"deps/requirements.txt": "-f wheels\ntorch==2.5.1\n", "deps/wheels/x.txt": ""})
    locked = read("deps/requirements.txt@HEAD")
    assert locked.options == (f"--find-links {(project / 'deps/wheels').as_uri()}",)
    assert locked.messages == (
        "deps/requirements.txt, line 1: '-f wheels' is read from the working tree, also for revision 'HEAD'.",
    )
    assert read("deps/requirements.txt").messages == ()
