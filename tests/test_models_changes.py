"""``--changed``: which files of a repository are compared, what is gated, and what cannot be."""

import os
import subprocess
import time

import pytest

from stele.environments import trees
from stele.errors import SteleError
from stele.models import changes
from stele.models.arms import Extras

OLD, NEW = "jax==0.10.1\njaxlib==0.10.1\n", "jax==0.10.2\njaxlib==0.10.2\n"
ONE_OLD, ONE_NEW = "jax==0.10.1\n", "jax==0.10.2\n"
CONDA = "name: x\nchannels: [conda-forge]\ndependencies:\n- python=3.11\n- pip:\n  - "
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


def lines(locked):
    return sorted({*locked.requirements, *locked.constraints})


@pytest.mark.parametrize(
    ("old", "new", "file"),
    [
        (
            {"base.txt": OLD, "requirements.txt": "-r base.txt\n"},
            {"base.txt": NEW},
            "requirements.txt (base.txt)",
        ),
        (
            {"reqs/base.txt": OLD, "requirements.txt": "-r reqs/base.txt\n"},
            {"reqs/base.txt": NEW},
            "requirements.txt (reqs/base.txt)",
        ),
        (
            {"a.list": OLD, "x/b.txt": "-r ../a.list", "requirements.txt": "--requirement=x/b.txt\n"},
            {"a.list": NEW},
            "requirements.txt (a.list)",
        ),
        (
            {"pins/c.txt": OLD, "requirements.txt": "jax\njaxlib\n-c pins/c.txt\n"},
            {"pins/c.txt": NEW},
            "requirements.txt (pins/c.txt)",
        ),
        (
            {"base.txt": OLD, "env.yml": CONDA + "-r base.txt\n"},
            {"base.txt": NEW},
            "env.yml (base.txt)",
        ),
        (
            {"base.txt": OLD, "setup.cfg": "[options]\ninstall_requires = file: base.txt\n"},
            {"base.txt": NEW},
            "setup.cfg (base.txt)",
        ),
        *(
            ({name: f"# pins\n{OLD}"}, {name: f"# pins\n{NEW}"}, name)
            for name in (
                "requirements.txt",
                "requirements/gpu/cuda.txt",
                "a/b/c/d/requirements.txt",
                "requirements.in",
                "reqs.txt",
                "pins.txt",
                "deps/ml.txt",
                "Requirements.txt",
                "REQUIREMENTS-GPU.TXT",
                "reqs/pins",
                "train.lock",
                "deps.pip",
            )
        ),
        (
            {"requirements.txt": OLD},
            {"requirements.txt": None, "requirements-prod.txt": NEW},
            "requirements-prod.txt",
        ),
        ({"reqs.txt": OLD}, {"reqs.txt": None, "deps/reqs.txt": f"# why\n{NEW}"}, "deps/reqs.txt"),
    ],
)
@pytest.mark.parametrize("whole_files", [True, False])
def test_every_file_that_names_packages_is_compared(repository, old, new, file, whole_files):
    found = find(repository(old, new), whole_files=whole_files)
    [pair] = found.pairs
    assert pair.summary == f"jax 0.10.1 to 0.10.2, jaxlib 0.10.1 to 0.10.2 in {file}"
    assert {*OLD.split()} <= {*lines(pair.contents[0])} and {*NEW.split()} <= {*lines(pair.contents[1])}
    assert not (found.ungated or found.blocked)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conda/env.yaml", CONDA + "jax=={}\n"),
        ("ENVIRONMENT.YML", CONDA + "jax=={}\n"),
        ("cluster.yml", CONDA + "jax=={}\n"),
        ("setup.cfg", CFG + "jax=={}\n"),
        ("setup.py", SETUP.format("jax=={}")),
        ("sub/pyproject.toml", PROJECT.format("jax=={}")),
        ("a/b/c/d/e/uv.lock", LOCK),
        ("script.py.lock", LOCK),
        ("poetry.lock", POETRY),
        ("pylock.gpu.toml", '[[packages]]\nname = "jax"\nversion = "{}"\n'),
    ],
)
def test_every_lock_file_and_every_project_is_compared(repository, name, text):
    old, new = (text.replace("{}", version) for version in ("0.10.1", "0.10.2"))
    [pair] = find(repository({name: old}, {name: new})).pairs
    assert (pair.old, pair.new) == (f"{name}@main", f"{name} with jax 0.10.2")
    assert pair.summary == f"jax 0.10.1 to 0.10.2 in {name}"
    assert "jax==0.10.1" in pair.contents[0].requirements and "jax==0.10.2" in pair.contents[1].requirements


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.txt", "torch\nis what we use, version {}\n"),
        ("words.txt", "apple\ntree\nnumber\n"),
        ("requirements.md", "jax=={}\n# is needed for training\nas you know\n"),
        ("Chart.yaml", "name: x\ndependencies:\n- name: jax\n  version: {}\n"),
        ("mkdocs.yml", "name: x\n"),
        ("Cargo.lock", '[[package]]\nname = "jax"\nversion = "{}"\n'),
        ("notes", "jax=={}\n"),
        ("image.txt", "jax=={}\n\0"),
    ],
)
def test_other_files_are_not_compared_and_without_any_there_is_nothing_to_compare(repository, name, text):
    folder = repository({name: text.replace("{}", "1")}, {name: text.replace("{}", "2")})
    with pytest.raises(
        SteleError, match="There is nothing to compare: neither 'main' nor the working tree has"
    ):
        find(folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("jax~=0.9.0", "jax~=0.10.0"),
        ("jax==0.9.*", "jax==0.10.*"),
        ("jax<0.10.2,>=0.10.1", "jax<0.11,>=0.10.2"),
        ("jax>=0.9", "jax==0.10.2"),
        ("jax", "jax>=0.10"),
        ("jax==0.10.1", "jax[cuda12]==0.10.1"),
    ],
)
def test_a_range_is_gated_as_it_is_written(repository, old, new):
    folder = repository({"requirements.txt": f"numpy\n{old}\n"}, {"requirements.txt": f"numpy\n{new}\n"})
    [pair] = find(folder).pairs
    assert (pair.contents[0].requirements, pair.contents[1].requirements) == (("numpy", old), ("numpy", new))
    [pair] = find(folder, whole_files=False).pairs
    assert (pair.old, pair.new) == (old, new)


def test_new_is_the_complete_file_of_the_working_tree(repository):
    folder = repository(
        {"requirements.txt": f"{OLD}torch==2.12.0\nnumpy==1.26.4\n"},
        {"requirements.txt": f"{NEW}torch==2.13.0\nnumpy==2.1.0\n"},
    )
    found = find(folder)
    [pair] = found.pairs
    assert pair.old == "requirements.txt@main"
    assert pair.new == "requirements.txt with jax 0.10.2, jaxlib 0.10.2, torch 2.13.0, numpy 2.1.0"
    assert pair.summary == (
        "jax 0.10.1 to 0.10.2, jaxlib 0.10.1 to 0.10.2, torch 2.12.0 to 2.13.0, numpy 1.26.4 to 2.1.0 "
        "in requirements.txt"
    )
    assert lines(pair.contents[0]) == ["jax==0.10.1", "jaxlib==0.10.1", "numpy==1.26.4", "torch==2.12.0"]
    assert lines(pair.contents[1]) == ["jax==0.10.2", "jaxlib==0.10.2", "numpy==2.1.0", "torch==2.13.0"]
    assert not (found.notes or found.ungated or found.blocked)


def test_a_built_in_task_has_a_gate_for_each_framework_and_says_what_it_does_not_use(repository):
    folder = repository(
        {"requirements.txt": f"{OLD}torch==2.12.0\nnumpy==1.26.4\nflax==0.12\n"},
        {"requirements.txt": f"{NEW}torch==2.13.0\nnumpy==2.1.0\nflax==0.12\n"},
    )
    found = find(folder, whole_files=False)
    assert [(pair.old, pair.new) for pair in found.pairs] == [
        ("torch==2.12.0", "torch==2.13.0"),
        ("flax==0.12 jax==0.10.1 jaxlib==0.10.1", "flax==0.12 jax==0.10.2 jaxlib==0.10.2"),
    ]
    [note] = found.notes
    assert note.startswith(
        "changed, but not gated: numpy 1.26.4 to 2.1.0 in requirements.txt. The built-in tasks do"
    )


@pytest.mark.parametrize(
    ("old", "new", "summary"),
    [
        ("tensorflow==2.17.0\n", "tensorflow-cpu==2.18.0\n", "tensorflow 2.17.0 to tensorflow-cpu 2.18.0"),
        ("onnxruntime==1.20\n", "onnxruntime-gpu==1.20\n", "onnxruntime 1.20 to onnxruntime-gpu 1.20"),
        ("paddlepaddle-gpu==3.0\n", "paddlepaddle==3.1\n", "paddlepaddle-gpu 3.0 to paddlepaddle 3.1"),
        ("tf-nightly-cpu==1\n", "tensorflow==2\n", "tf-nightly-cpu 1 to tensorflow 2"),
        (
            "jax-cuda12-plugin==0.10.1\n",
            "jax-cuda13-plugin==0.10.2\n",
            "jax-cuda12-plugin 0.10.1 to jax-cuda13-plugin 0.10.2",
        ),
    ],
)
@pytest.mark.parametrize("whole_files", [True, False])
def test_two_names_of_one_framework_are_one_package(repository, old, new, summary, whole_files):
    folder = repository({"reqs.txt": f"{old}chainer==7.8.0\n"}, {"reqs.txt": f"{new}chainer==7.8.1\n"})
    found = find(folder, whole_files=whole_files)
    assert not (found.ungated or found.blocked)
    assert summary in "; ".join(pair.summary for pair in found.pairs)
    measured = {line for pair in found.pairs for line in lines(pair.contents[1])}
    assert measured == {new.strip(), "chainer==7.8.1"}


@pytest.mark.parametrize(
    ("new", "whole_files", "blocked"),
    [
        ({"requirements.txt": f"{NEW}torch==2.13.0\n"}, True, False),
        ({"requirements.txt": f"{NEW}torch==2.13.0\n"}, False, True),
        ({"requirements.txt": f"{NEW}flax==0.12\n"}, False, False),
        ({"requirements.txt": NEW, "gpu.txt": "torch==2.13.0\n"}, True, True),
    ],
)
def test_a_framework_that_is_added_beside_a_gate_needs_to_be_measured_in_it(
    repository, new, whole_files, blocked
):
    found = find(repository({"requirements.txt": OLD, "gpu.txt": "numpy>=1\n"}, new), whole_files=whole_files)
    assert (len(found.pairs), found.blocked) == (1, blocked)
    assert "has nothing to be compared with: the revision does not name" in found.ungated[0]


def test_a_subfolder_has_the_same_changes_under_names_from_the_root(repository):
    folder = repository({"train/reqs.txt": OLD, "uv.lock": LOCK.format("1")}, {"train/reqs.txt": NEW})
    assert find(folder / "train") == find(folder)
    assert find(folder).pairs[0].old == "train/reqs.txt@main"


@pytest.mark.parametrize(
    ("old", "new", "summary", "name"),
    [
        (
            {"train/requirements.txt": "-r ../base.txt\n", "base.txt": ONE_OLD},
            {"base.txt": ONE_NEW},
            "jax 0.10.1 to 0.10.2 in train/requirements.txt (base.txt)",
            "train/requirements.txt",
        ),
        (
            {"train/pyproject.toml": PROJECT.format("jax"), "train/uv.lock": LOCK.format("0.10.1")},
            {"train/uv.lock": LOCK.format("0.10.2")},
            "jax 0.10.1 to 0.10.2 in train/uv.lock",
            "train/uv.lock",
        ),
    ],
    ids=["include", "project"],
)
def test_what_changed_in_one_subfolder_is_found_from_another(repository, old, new, summary, name):
    found = find(repository({**old, "docs/index.md": "words\n"}, new) / "docs")
    [pair] = found.pairs
    assert (pair.summary, pair.name, pair.old) == (summary, name, f"{name}@main")
    assert not (found.ungated or found.blocked)


def test_two_files_with_the_same_change_are_named_and_measured_once(repository):
    names = ("a/requirements.txt", "requirements.txt", "reqs.txt")
    found = find(repository(dict.fromkeys(names, OLD), dict.fromkeys(names, NEW)))
    [pair] = found.pairs
    assert pair.summary.endswith("in a/requirements.txt and reqs.txt and requirements.txt")
    assert found.files == sorted(names)


@pytest.mark.parametrize(
    ("others", "summaries"),
    [
        ({"requirements.txt": "jax=={}\n"}, ["in requirements.txt", "in uv.lock"]),
        ({"train/requirements.txt": "jax=={}\n"}, ["in train/requirements.txt", "in uv.lock"]),
        ({"train/uv.lock": LOCK}, ["in train/uv.lock and uv.lock"]),
    ],
)
def test_a_lock_file_and_another_file_with_the_same_change_are_both_named(repository, others, summaries):
    def all_with(version):
        return {name: text.replace("{}", version) for name, text in {"uv.lock": LOCK, **others}.items()}

    found = find(repository(all_with("0.10.1"), all_with("0.10.2")))
    assert [pair.summary for pair in found.pairs] == [f"jax 0.10.1 to 0.10.2 {one}" for one in summaries]
    assert not (found.ungated or found.blocked)


JAXLIB = '[[package]]\nname = "jaxlib"\nversion = "{}"\n'


def test_a_project_and_its_lock_file_with_more_packages_are_one_gate_of_the_lock_file(repository):
    def both(version):
        locked = f'{LOCK}dependencies = [{{ name = "jaxlib" }}]\n{JAXLIB}{MEMBERS}'.replace("{}", version)
        return {"pyproject.toml": PROJECT.format(f"jax=={version}"), "uv.lock": locked}

    found = find(repository(both("0.10.1"), both("0.10.2")))
    [pair] = found.pairs
    assert pair.summary == "jax 0.10.1 to 0.10.2, jaxlib 0.10.1 to 0.10.2 in uv.lock"
    assert not (found.ungated or found.blocked)


def test_two_files_with_other_packages_or_other_changes_are_gated_each(repository):
    files = {"a.txt": OLD, "b.txt": f"{OLD}flax\n", "c.txt": ONE_OLD}
    found = find(repository(files, {"a.txt": NEW, "b.txt": f"{NEW}flax\n", "c.txt": "jax==0.10.0\n"}))
    assert [pair.name for pair in found.pairs] == ["a.txt", "b.txt", "c.txt"]


LOCKED = [
    ("pyproject.toml", PROJECT, "uv.lock", LOCK + MEMBERS),
    ("a/b/pyproject.toml", PROJECT, "a/uv.lock", LOCK + MEMBERS),
    ("pyproject.toml", PROJECT, "poetry.lock", POETRY),
    ("requirements/base.in", "{}\n", "requirements/base.txt", "jax=={}\n"),
    ("setup.cfg", CFG + "{}\n", "requirements.txt", "jax=={}\n"),
    ("setup.py", SETUP, "requirements.txt", "jax=={}\n"),
]


@pytest.mark.parametrize(("project", "wanted", "lock", "text"), LOCKED)
def test_of_a_project_and_its_lock_file_the_lock_file_counts(repository, project, wanted, lock, text):
    def both(version):
        return {project: wanted.replace("{}", f"jax=={version}"), lock: text.replace("{}", version)}

    found = find(repository(both("0.10.1"), both("0.10.2")))
    assert [pair.old for pair in found.pairs] == [f"{lock}@main"]
    assert not found.ungated


@pytest.mark.parametrize(("project", "wanted", "lock", "text"), LOCKED)
def test_a_project_that_its_lock_file_still_fits_changes_nothing_and_one_that_it_does_not_fit_is_an_error(
    repository, project, wanted, lock, text
):
    old = {project: wanted.replace("{}", "jax>=0.9"), lock: text.replace("{}", "0.10.1")}
    folder = repository(old, {project: wanted.replace("{}", "jax>=0.10")})
    assert not (find(folder).pairs or find(folder).ungated)
    (folder / project).write_text(wanted.replace("{}", "jax>=0.11"))
    found = find(folder)
    assert (found.pairs, found.blocked) == ([], True)
    assert found.ungated == [f"{project} requires jax>=0.11, but {lock} has 0.10.1. Lock again."]


def test_a_project_counts_if_its_lock_file_does_not_have_the_package(repository):
    old = {
        "pyproject.toml": PROJECT.format("jax==0.10.1"),
        "uv.lock": LOCK.replace("jax", "numpy").format("2.0"),
    }
    [pair] = find(repository(old, {"pyproject.toml": PROJECT.format("jax==0.10.2")})).pairs
    assert pair.name == "pyproject.toml"


def test_a_file_that_only_limits_a_package_which_another_one_requires_is_not_gated(repository):
    old = {
        "c.txt": OLD,
        "requirements.txt": "jax\n-c c.txt\n",
        "docs/requirements.txt": "sphinx\n-c ../c.txt\n",
    }
    found = find(repository(old, {"c.txt": NEW}))
    assert [pair.name for pair in found.pairs] == ["requirements.txt"]
    assert not found.blocked


def test_a_compiled_file_counts_although_another_one_uses_it_as_a_constraint(repository):
    old = {"requirements.txt": OLD, "dev.in": "pytest\n-c requirements.txt\n", "dev.txt": "pytest==9\n"}
    assert [pair.name for pair in find(repository(old, {"requirements.txt": NEW})).pairs] == [
        "requirements.txt"
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "numpy\njax==0.10.1\n",
            "numpy\njax @ https://ada:secret@example.org/jax-1-py3-none-any.whl\n",
            "https://ada:***@example.org/jax-1-py3-none-any.whl' is installed from a URL",
        ),
        (
            "jax==0.10.1\n",
            "-e git+https://example.org/jax#egg=jax\n",
            "git+https://example.org/jax#egg=jax' is installed from a URL",
        ),
        (
            "numpy\njax==0.10.1\n",
            "numpy\n",
            "line 2: 'jax==0.10.1' has nothing to be compared with: the working tree",
        ),
        (
            "numpy\n",
            "numpy\njax==0.10.1\n",
            "line 2: 'jax==0.10.1' has nothing to be compared with: the revision",
        ),
        (
            "jax==1; os_name == 'dos'\n",
            "jax==2; os_name == 'dos'\n",
            "line 1: 'jax==2; os_name == \"dos\"' changed",
        ),
        ("jax==1\n", "jax==1\njax==2; os_name == 'dos'\n", "line 2: 'jax==2; os_name == \"dos\"' changed"),
        (
            "-r base.txt\njax==1\n",
            "-r base.txt\njax==2\n",
            "line 1: '-r base.txt' names a file that cannot be read",
        ),
        ("jax==1\n", "jax==2\n-r ../x.txt\n", "../x.txt is outside of the repository"),
        ("jax==1\n", "jax==2\ntorch = 3\n", "line 2: 'torch = 3' is not a requirement"),
    ],
)
def test_a_change_that_cannot_be_gated_is_named_with_its_line(repository, old, new, message):
    found = find(repository({"requirements.txt": old}, {"requirements.txt": new}))
    [line] = found.ungated
    assert message in line and "requirements.txt" in line and "secret" not in line
    assert (found.pairs, found.blocked) == ([], True)


def test_an_include_that_is_missing_in_the_revision_is_named(repository):
    folder = repository(
        {"requirements.txt": "-r base.txt\njax==1\n"}, {"requirements.txt": "-r base.txt\njax==2\n"}
    )
    (folder / "base.txt").write_text("numpy\n")  # Git does not list it
    [line] = find(folder).ungated
    assert line.startswith(
        "At revision 'main': requirements.txt, line 1: '-r base.txt' names a file that cannot be read"
    )


def test_an_include_may_move(repository):
    old = {"requirements.txt": "-r base.txt\n", "base.txt": OLD}
    new = {"requirements.txt": "-r reqs/base.txt\n", "base.txt": None, "reqs/base.txt": NEW}
    found = find(repository(old, new))
    assert [pair.summary for pair in found.pairs] == [
        "jax 0.10.1 to 0.10.2, jaxlib 0.10.1 to 0.10.2 in requirements.txt (reqs/base.txt)"
    ]
    assert "reqs/base.txt (included by requirements.txt)" in found.files


def test_beside_a_gate_a_url_blocks_and_an_addition_does_not(repository):
    url = "torch @ https://example.org/torch-2-py3-none-any.whl\n"
    folder = repository(
        {"requirements.txt": f"{OLD}torch==1\n"}, {"requirements.txt": f"{NEW}torch==1\nflax==1\n"}
    )
    assert (len(find(folder).pairs), len(find(folder).ungated), find(folder).blocked) == (1, 1, False)
    (folder / "requirements.txt").write_text(NEW + url)
    assert find(folder, whole_files=False).blocked
    allowed = find(folder, allow_vcs=True)
    assert not allowed.ungated and url.strip() in allowed.pairs[0].contents[1].requirements


def test_the_python_of_the_gate_decides_which_lines_hold(repository):
    def text(version):
        return f"jax==0.6.2; python_version < '3.11'\njax=={version}; python_version >= '3.11'\n"

    folder = repository({"requirements.txt": text("0.10.1")}, {"requirements.txt": text("0.10.2")})
    assert len(find(folder, python="3.12").pairs) == 1
    assert "Try another --python" in find(folder, python="3.10").ungated[0]


def test_a_pin_of_an_extra_or_a_group_is_seen_and_gated_if_it_is_selected(repository):
    def text(version):
        extra = '[project.optional-dependencies]\ncpu = ["torch==VERSION"]\n'.replace("VERSION", version)
        return PROJECT.format("jax") + extra + f'[dependency-groups]\ndev = ["keras=={version}"]\n'

    folder = repository({"pyproject.toml": text("1")}, {"pyproject.toml": text("2")})
    found = find(folder)
    assert (found.pairs, found.blocked, len(found.ungated)) == ([], True, 2)
    assert found.ungated[1] == (
        "pyproject.toml: torch changed only in an extra or a group that is not installed. "
        "Select one: --extra NAME, of cpu."
    )
    assert find(folder, names=("cpu",)).pairs[0].summary == "torch 1 to 2 in pyproject.toml"


def test_comments_and_another_spelling_are_no_change(repository):
    old = {"requirements.txt": "jax==0.10.1\nnumpy==1\nFlax==1.0\n", "words.txt": "jax"}
    new = {"requirements.txt": "# why\nJAX == 0.10.1  # why\nNumPy==1.0\nflax==1.0.0\n"}
    found = find(repository(old, new))
    assert (found.pairs, found.ungated, found.blocked) == ([], [], False)
    assert found.files == ["requirements.txt", "words.txt"]


def test_another_index_is_a_change_of_the_frameworks(repository):
    def text(kind):
        return f"--extra-index-url https://ada:secret@example.org/{kind}\ntorch==2.13.0\nnumpy==1\n"

    [pair] = find(repository({"requirements.txt": text("cu128")}, {"requirements.txt": text("cpu")})).pairs
    assert pair.summary == "torch 2.13.0 from another index in requirements.txt"
    assert [one.options for one in pair.contents] == [
        ("--extra-index-url https://ada:secret@example.org/cu128",),
        ("--extra-index-url https://ada:secret@example.org/cpu",),
    ]


def test_local_packages_are_left_out_with_their_lines(repository):
    text = "-e .\n./layers\nlibs/x-1-py3-none-any.whl\n"
    [pair] = find(repository({"requirements.txt": text + OLD}, {"requirements.txt": text + NEW})).pairs
    assert pair.contents[0].requirements == tuple(OLD.split())
    assert [message.split(" is left out")[0] for message in pair.contents[0].messages] == [
        "requirements.txt, line 1: '-e .'",
        "requirements.txt, line 2: './layers'",
        "requirements.txt, line 3: 'libs/x-1-py3-none-any.whl'",
    ]


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


def test_a_file_that_cannot_be_installed_does_not_prevent_the_gate_of_another(repository):
    url = "x @ https://example.org/x-1-py3-none-any.whl\n"
    folder = repository({"a.txt": OLD, "b.txt": url + OLD}, {"a.txt": NEW, "b.txt": url + NEW})
    found = find(folder)
    assert ([pair.name for pair in found.pairs], found.blocked) == (["a.txt"], True)
    assert found.ungated == [
        "At revision 'main': b.txt, line 1: 'x @ https://example.org/x-1-py3-none-any.whl' is installed from a URL. "
        "Pass --allow-vcs to allow this."
    ]


def test_of_two_lock_files_the_nearest_counts(repository):
    def both(version):
        return {
            "z/pyproject.toml": PROJECT.format(f"jax=={version}"),
            "z/uv.lock": LOCK.format(version) + MEMBERS,
        }

    above = LOCK.format("0.9.0") + MEMBERS.replace('"b"', '"z"')
    found = find(repository({**both("0.10.1"), "uv.lock": above}, both("0.10.2")))
    assert ([pair.name for pair in found.pairs], found.ungated) == (["z/uv.lock"], [])


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


def test_a_file_that_is_too_large_is_refused_and_not_read(repository, monkeypatch):
    monkeypatch.setattr(trees, "LARGEST", 100)
    folder = repository({"requirements.txt": ONE_OLD}, {"requirements.txt": ONE_NEW + "#" * 100})
    with pytest.raises(SteleError, match=r"requirements.txt has 112 bytes; at most 100 are read"):
        find(folder)


def test_many_files_of_data_take_little_time(repository):
    data = {f"data/{index}.txt": "word\n" * 2000 + f"{index}\n" for index in range(300)}
    folder = repository(
        {**data, "requirements.txt": ONE_OLD}, {name: text + "x\n" for name, text in data.items()}
    )
    begin = time.monotonic()
    assert find(folder).files == ["requirements.txt"]
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize(
    "name",
    [
        "jax-cuda12-plugin",
        "jax-cuda13-pjrt",
        "tensorflow-gpu",
        "tf_keras",
        "keras-nightly",
        "torchaudio",
        "onnxruntime-gpu",
    ],
)
def test_companions_of_a_framework_count(repository, name):
    folder = repository({"requirements.txt": f"{name}==1\n"}, {"requirements.txt": f"{name}==2\n"})
    assert len(find(folder).pairs) == 1


# other packages than frameworks


@pytest.mark.parametrize(
    ("old", "new", "summary"),
    [
        (
            {"svc/requirements.txt": "jax\n-c constraints.txt\n", "svc/constraints.txt": "numpy==2.4.5\n"},
            {"svc/constraints.txt": "numpy==2.4.6\n"},
            "numpy 2.4.5 to 2.4.6 in svc/requirements.txt (svc/constraints.txt)",
        ),
        ({"a.txt": "jax\nscipy>=1\n"}, {"a.txt": "jax\nscipy>=2\n"}, "scipy >=1 to >=2 in a.txt"),
        ({"a.txt": "torch\n"}, {"a.txt": "torch\naccelerate==1\n"}, "accelerate==1 added in a.txt"),
        ({"a.txt": "torch\neinops\n"}, {"a.txt": "torch\n"}, "einops removed in a.txt"),
        (
            {"requirements.txt": "lightning==2.0\n"},
            {"requirements.txt": "lightning==2.5\n"},
            "lightning 2.0 to 2.5",
        ),
        (
            {"uv.lock": LOCK.replace("{}", "1") + JAXLIB.replace("jaxlib", "x").replace("{}", "1")},
            {"uv.lock": LOCK.replace("{}", "1") + JAXLIB.replace("jaxlib", "x").replace("{}", "2")},
            "x 1 to 2 in uv.lock",
        ),
    ],
)
def test_with_a_model_every_package_that_changed_in_its_environment_is_gated(repository, old, new, summary):
    folder = repository(old, new)
    [pair] = find(folder).pairs
    assert pair.summary.startswith(summary) and not find(folder).notes and not find(folder).blocked
    assert pair.contents[0] != pair.contents[1]
    without = find(folder, whole_files=False)
    [note] = without.notes
    assert note.startswith(f"changed, but not gated: {summary}") and not (without.pairs or without.ungated)


def test_with_a_model_packages_of_a_file_without_a_framework_are_named_and_not_gated(repository):
    old = {"docs/requirements.txt": "sphinx==7\n", "requirements.txt": ONE_OLD}
    found = find(repository(old, {"docs/requirements.txt": "sphinx==8\nfuro\n"}))
    assert found.notes == [
        "changed, but not gated: furo added, sphinx 7 to 8 in docs/requirements.txt. "
        "No model is run with this file alone: it names no framework, or only one side has it."
    ]
    assert not (found.pairs or found.ungated)


def test_of_many_packages_that_changed_the_frameworks_and_the_first_are_named(repository):
    old, new = ("".join(f"a{index}=={version}\n" for index in range(20)) for version in (1, 2))
    [pair] = find(repository({"a.txt": old + ONE_OLD}, {"a.txt": new + ONE_NEW})).pairs
    assert pair.summary.startswith("jax 0.10.1 to 0.10.2, a0 1 to 2, ")
    assert pair.summary.endswith(" and 13 more in a.txt") and len(pair.packages) == 21


def test_a_change_without_a_gate_beside_a_gate_of_another_package_is_no_pass(repository):
    old = "jax\nnumpy==1\ntorch==1; os_name == 'dos'\n"
    found = find(repository({"a.txt": old}, {"a.txt": old.replace("==1", "==2")}))
    assert (len(found.pairs), found.blocked) == (1, True)


def test_a_project_whose_lock_file_still_fits_is_not_gated_for_another_package(repository):
    project = PROJECT.replace("{}", "jax").replace('"numpy"', '"numpy>=1"')
    lock = (
        LOCK.replace("{}", "1")
        + JAXLIB.replace("jaxlib", "numpy").replace("{}", "2.1")
        + MEMBERS.replace('{ name = "jax" }', '{ name = "jax" }, { name = "numpy" }')
    )
    found = find(
        repository(
            {"pyproject.toml": project, "uv.lock": lock}, {"pyproject.toml": project.replace(">=1", ">=2")}
        )
    )
    assert not (found.pairs or found.ungated or found.notes)


# what counts as a change


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("jax~=0.10.0", "jax~=0.10"),
        ("jax~=1.4.0.0", "jax~=1.4.0"),
        ("jax===0.10.0", "jax===0.10"),
        ("jax===0.10", "jax==0.10"),
    ],
)
def test_versions_are_compared_as_an_installer_compares_them(repository, old, new):
    folder = repository({"requirements.txt": f"{old}\n"}, {"requirements.txt": f"{new}\n"})
    [pair] = find(folder).pairs
    assert (pair.contents[0].requirements, pair.contents[1].requirements) == ((old,), (new,))
    [pair] = find(folder, whole_files=False).pairs
    assert (pair.old, pair.new) == (old, new)


@pytest.mark.parametrize(("old", "new"), [("jax==0.10.0", "jax==0.10"), ("jax>=0.10", "jax>=0.10.0")])
def test_a_zero_at_the_end_is_no_change_where_an_installer_ignores_it(repository, old, new):
    found = find(repository({"requirements.txt": f"{old}\n"}, {"requirements.txt": f"{new}\n"}))
    assert not (found.pairs or found.ungated)


# what no reader understands


EXPLICIT = (
    "@EXPLICIT\nhttps://conda.anaconda.org/conda-forge/noarch/jax-{}-pyhd8ed1ab_0.conda#0123456789abcdef\n"
)
PIXI_LOCK = "version: 6\npackages:\n- conda: https://conda.anaconda.org/conda-forge/linux-64/{}.conda\n"


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "place"),
    [
        ("setup.py", "reqs = []\nreqs += ['jax=={}']\nsetup(install_requires=reqs)\n", "1", "2", "setup.py"),
        ("setup.py", "reqs = []\nreqs.append('jax=={}')\nsetup(install_requires=reqs)\n", "1", "2", "setup.py"),
        ("setup.py", "x = dict(install_requires=['jax=={}'])\nsetup(**x)\n", "1", "2", "setup.py"),
        ("setup.py", "V = '{}'\nsetup(install_requires=[f'jax=={V}'])\n", "1", "2", "setup.py"),
        ("setup.py", "import tools\ntools.s(install_requires=['jax=={}'])\n", "1", "2", "setup.py, line 2"),
        ("requirements.txt", "./vendor/{}-py3-none-any.whl\n", "jaxlib-1", "jaxlib-2", "requirements.txt, line 1"),
        ("requirements.txt", "numpy\n{}\n", "", "-e third_party/jax", "requirements.txt, line 2"),
        ("environment.yml", "dependencies:\n- pytorch={}\n b: [\n", "2.4", "2.5", "environment.yml"),
        ("cluster.yml", "dependencies:\n- pytorch={}\n b: [\n", "2.4", "2.5", "cluster.yml, line 2"),
        ("env.yml", "dependencies:\n- pytorch=2.5.1\n- pytorch-cuda={}\n", "11.8", "12.4", "env.yml, line 3"),
        ("env.yml", "dependencies:\n- pytorch=2.5.1={}\n", "cpu_py311", "cuda_py311", "env.yml, line 2"),
        ("pixi.lock", PIXI_LOCK, "pytorch-2.4.0-cpu", "pytorch-2.5.1-cpu", "pixi.lock, line 3"),
        ("a/conda-lock.yml", PIXI_LOCK, "jaxlib-0.4.0-x", "jaxlib-0.5.0-x", "a/conda-lock.yml, line 3"),
        ("x.conda-lock.yaml", PIXI_LOCK, "tensorflow-base-2.0", "tensorflow-base-2.1", "x.conda-lock.yaml, line 3"),
        ("pixi.toml", "[dependencies]\npytorch = '{}'\n", "2.4.*", "2.5.*", "pixi.toml names torch"),
        ("pixi.toml", "[feature.a.pypi-dependencies]\njax = {{ version = '=={}' }}\n", "1", "2", "pixi.toml names jax"),
        ("pixi.toml", "[dependencies]\npytorch = '{}'\nx = \n", "2.4.*", "2.5.*", "pixi.toml, line 2"),
        ("Pipfile", "[packages]\ntorch = '=={}'\n", "2.4", "2.5", "Pipfile names torch"),
        ("pyproject.toml", "[tool.pixi.dependencies]\npytorch = '{}'\n", "2.4", "2.5", "pyproject.toml: torch"),
        ("more.yaml", "name: x\ndependencies:\n- jax=={}\n- x: y\n", "1", "2", "more.yaml, line 3"),
        ("deps/notes.txt", "We install:\n\njax=={}\n", "1", "2", "deps/notes.txt, line 3"),
        ("conda-linux-64.lock", EXPLICIT, "0.10.1", "0.10.2", "conda-linux-64.lock, line 2"),
        ("spec-file.txt", EXPLICIT, "0.10.1", "0.10.2", "spec-file.txt, line 2"),
        ("osx.txt", EXPLICIT.replace("noarch/jax", "x/pytorch"), "2.4.0", "2.5.1", "osx.txt, line 2"),
        ("package-list.txt", "# platform: x\njax={}=pyhd8ed1ab_0\n", "0.10.1", "0.10.2", "package-list.txt, line 2"),
        ("conda-pins.txt", "conda-forge::pytorch={}\n", "2.4", "2.5", "conda-pins.txt, line 1"),
        ("tox.ini", "[testenv]\ndeps = jax=={}\n", "0.10.1", "0.10.2", "tox.ini, line 2"),
        ("tox.ini", "[testenv]\ndeps =\n    py311: jax[cpu]>={}\n", "0.9", "0.10", "tox.ini, line 3"),
        ("deploy/app.cfg", "[app]\nneeds = torch ~= {}\n", "2.4", "2.5", "deploy/app.cfg, line 2"),
        ("noxfile.py", "def f(s):\n    s.install('jax=={}')\n", "0.10.1", "0.10.2", "noxfile.py, line 2"),
        ("train.py", "# /// script\n# dependencies = ['jax=={}']\n# ///\n", "1", "2", "train.py names jax"),
        ("a/b.py", "#!x\n# /// script\n# [tool.x]\n# torch = '{}'\n# ///\n", "1", "2", "a/b.py names torch"),
        ("notes.txt", "wheels:\nx/torch-{}-cp311-none-any.whl\nof us all\n", "2.4.0", "2.5.0", "notes.txt, line 2"),
    ],
)  # fmt: skip
def test_a_changed_line_that_names_a_framework_and_is_not_understood_blocks(
    repository, name, text, old, new, place
):
    files = {"requirements/other.txt": "numpy==1\n"}
    old, new = (text.replace("{}", value).replace("{{", "{").replace("}}", "}") for value in (old, new))
    found = find(repository({**files, name: old}, {name: new}))
    [line] = found.ungated
    assert place in line and (found.pairs, found.blocked) == ([], True)
    assert name in found.files


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("README.txt", "We use jax 0.10.1 and torch.\n", "We use jax 0.10.2 and torch.\n"),
        ("docs/install.txt", "$ pip install jax==0.10.1\n", "$ pip install jax==0.10.2\n"),
        (".github/workflows/x.yml", "run: pip install jax==0.10.1\n", "run: pip install jax==0.10.2\n"),
        ("ruff.toml", "exclude = ['torch']\n", "exclude = ['torch', 'jax']\n"),
        ("Cargo.toml", "[dependencies]\nonnxruntime = '0.1'\n", "[dependencies]\nonnxruntime = '0.2'\n"),
        ("pixi.lock", "requires_dist:\n- torch>=1\n", "requires_dist:\n- torch>=2\n"),
        ("setup.py", "import torch\nsetup(install_requires=[])\n", "import jax.x\nsetup(install_requires=[])\n"),
        ("requirements.txt", "x==1\n    # via torch\n", "x==1\n    # via\n    #   jax\n    #   torch\n"),
        ("requirements.txt", "x==1\n./torch-layers\n", "x==1\n./my-torch\n"),
        ("environment.yml", "name: torch\ndependencies:\n- x\n", "name: jax\ndependencies:\n- x\n"),
        ("tox.ini", "[testenv]\ncommands = pytest -k jax\n", "[testenv]\ncommands = pytest -k torch\n"),
        ("train.py", "import jax\nassert 'jax==1'\n", "import torch\nassert 'jax==2'\n"),
        ("a.py", "# /// script\n# x = ['jax==1']\n# ///\n", "# /// script\n# x=['jax==1']\n# ///\n1"),
        ("uv.toml", "cache-dir = 'a'\n", "cache-dir = 'b'\n"),
    ],
)  # fmt: skip
def test_prose_and_other_programs_are_no_change(repository, name, old, new):
    found = find(repository({"reqs/requirements.txt": OLD, name: old}, {name: new}))
    assert not (found.pairs or found.ungated)


@pytest.mark.parametrize("old", ["./vendor/jaxlib-0.10.1-py3-none-any.whl\n", "jaxlib==0.10.1\n"])
@pytest.mark.parametrize("whole_files", [True, False])
def test_a_framework_in_a_local_file_is_not_measured_beside_a_change(repository, old, whole_files):
    new = "./vendor/jaxlib-0.10.1-py3-none-any.whl\n" + ONE_NEW
    found = find(
        repository({"requirements.txt": old + ONE_OLD}, {"requirements.txt": new}), whole_files=whole_files
    )
    assert "jaxlib-0.10.1-py3-none-any.whl' is a local package, which is not measured" in found.ungated[-1]
    assert found.blocked


def test_what_a_lock_file_beside_it_says_covers_a_pipfile(repository):
    def both(version):
        lock = '{"_meta": {"pipfile-spec": 6}, "default": {"torch": {"version": "==VERSION"}}}'
        return {
            "Pipfile": f"[packages]\ntorch = '=={version}'\n",
            "Pipfile.lock": lock.replace("VERSION", version),
        }

    found = find(repository(both("2.4"), both("2.5")))
    assert ([pair.name for pair in found.pairs], found.ungated) == (["Pipfile.lock"], [])


@pytest.mark.parametrize("name", ["requirements.txt", "deps/ml.txt"])
def test_a_repository_without_a_name_is_a_package_that_needs_permission(repository, name):
    clip = "git+https://github.com/openai/CLIP.git\n"
    folder = repository({name: clip + OLD}, {name: clip + NEW})
    refused = find(folder)
    assert (refused.pairs, refused.blocked) == ([], True)
    assert "CLIP.git' is installed from a URL. Pass --allow-vcs" in refused.ungated[0]
    [pair] = find(folder, allow_vcs=True).pairs
    assert pair.contents[1].requirements[0] == "clip @ git+https://github.com/openai/CLIP.git"


# projects and their lock files

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
GIT = 'git = "https://github.com/jax-ml/jax?rev=main#' + SHA + '"'
AT_GIT = "jax @ git+https://github.com/jax-ml/jax"
SOURCES = "[tool.uv.sources]\njax = {}\n"


def uv_lock(source='registry = "https://pypi.org/simple"', digest="aa"):
    return UV_LOCK.format(
        source=source, files=f'wheels = [{{ url = "https://x/jax.whl", hash = "sha256:{digest}" }}]'
    )


@pytest.mark.parametrize("allow_vcs", [True, False])
@pytest.mark.parametrize(
    ("new", "locked"),
    [
        (PROJECT.replace("{}", AT_GIT), uv_lock()),
        (PROJECT.replace("{}", AT_GIT) + "# more\n", uv_lock(GIT.replace("jax-ml", "fork"))),
        (PROJECT.replace("{}", f"{AT_GIT}@abcdef0"), uv_lock(GIT)),
        (PROJECT.replace("{}", "jax>=0.9") + SOURCES.replace("{}", '{ git = "https://x/y", rev = "v1" }'), uv_lock()),
        (PROJECT.replace("{}", "jax>=0.11"), uv_lock(GIT)),
    ],
)  # fmt: skip
def test_a_lock_file_does_not_count_if_it_has_another_source(repository, new, locked, allow_vcs):
    old = {"pyproject.toml": PROJECT.replace("{}", "jax==0.10.1"), "uv.lock": locked}
    found = find(repository(old, {"pyproject.toml": new}), allow_vcs=allow_vcs)
    [line] = found.ungated
    assert "pyproject.toml" in line and "jax" in line
    assert (found.pairs, found.blocked) == ([], True)


@pytest.mark.parametrize("reference", [SHA, SHA[:7]])
def test_a_lock_file_counts_if_it_has_the_commit_that_the_project_names(repository, reference):
    old = {"pyproject.toml": PROJECT.replace("{}", f"{AT_GIT}@main"), "uv.lock": uv_lock(GIT)}
    found = find(repository(old, {"pyproject.toml": PROJECT.replace("{}", f"{AT_GIT}@{reference}")}))
    assert not (found.pairs or found.ungated)


def test_a_lock_file_with_another_commit_is_what_is_gated(repository):
    old = {"pyproject.toml": PROJECT.replace("{}", f"{AT_GIT}@v1"), "uv.lock": uv_lock(GIT)}
    new = {
        "pyproject.toml": PROJECT.replace("{}", f"{AT_GIT}@v2"),
        "uv.lock": uv_lock(GIT.replace(SHA, SHA[::-1])),
    }
    folder = repository(old, new)
    assert [pair.name for pair in find(folder, allow_vcs=True).pairs] == ["uv.lock"]
    [line] = find(folder).ungated
    assert line.startswith("uv.lock:") and find(folder).blocked


@pytest.mark.parametrize("folder", ["other", "b/c", ".."])
def test_a_uv_lock_locks_only_the_projects_that_it_lists(repository, folder):
    name = f"a/{folder}/pyproject.toml" if folder != ".." else "pyproject.toml"
    old = {"a/uv.lock": LOCK.format("0.10.1") + MEMBERS, name: PROJECT.format("jax==0.10.1")}
    found = find(repository(old, {name: PROJECT.format("jax==0.10.2")}))
    assert [pair.summary for pair in found.pairs] == [f"jax 0.10.1 to 0.10.2 in {name}"]


INDEX = "[[tool.uv.index]]\nname = 'a'\nurl = 'https://{}/simple'\nexplicit = true\n"
TORCH = PROJECT.replace("{}", "torch==2.13.0")
POETRY_PROJECT = (
    "[tool.poetry.dependencies]\ntorch = {{ version = '2.13.0', source = 'a' }}\n"
    "[[tool.poetry.source]]\nname = 'a'\nurl = 'https://{}/simple'\npriority = 'explicit'\n"
)


@pytest.mark.parametrize(
    ("old", "new", "summary"),
    [
        (
            TORCH + SOURCES.replace("jax", "torch").replace("{}", '{ git = "https://x/y", rev = "v1" }'),
            TORCH + SOURCES.replace("jax", "torch").replace("{}", '{ git = "https://x/y", rev = "v2" }'),
            "torch git+https://x/y@v1 to git+https://x/y@v2",
        ),
        (
            TORCH,
            TORCH + SOURCES.replace("jax", "torch").replace("{}", '{ url = "https://x/torch.tar.gz" }'),
            "torch 2.13.0 to https://x/torch.tar.gz",
        ),
        (
            TORCH + SOURCES.replace("jax", "Torch").replace("{}", "{ index = 'a' }") + INDEX.format("a"),
            TORCH + SOURCES.replace("jax", "Torch").replace("{}", "{ index = 'a' }") + INDEX.format("b"),
            "torch 2.13.0 from another index",
        ),
        (
            TORCH,
            TORCH + SOURCES.replace("jax", "torch").replace("{}", "[{ index = 'a' }]") + INDEX.format("b"),
            "torch 2.13.0 from another index",
        ),
        (
            TORCH + INDEX.format("a").replace("explicit", "default"),
            TORCH + INDEX.format("b").replace("explicit", "default"),
            "torch 2.13.0 from another index",
        ),
        (POETRY_PROJECT.format("a"), POETRY_PROJECT.format("b"), "torch 2.13.0 from another index"),
    ],
)
def test_where_a_project_takes_a_package_from_is_a_part_of_what_it_requires(repository, old, new, summary):
    folder = repository({"pyproject.toml": old}, {"pyproject.toml": new})
    found = find(folder, allow_vcs=True)
    [pair] = found.pairs
    assert pair.summary == f"{summary} in pyproject.toml" and not found.ungated
    assert pair.contents[0] != pair.contents[1]
    if "git+" in summary:
        assert find(folder).blocked and not find(folder).pairs


POETRY_LOCK = (
    '[[package]]\nname = "torch"\nversion = "2.13.0"\ngroups = ["main"]\n'
    'files = [{ file = "torch.whl", hash = "sha256:DIGEST" }]\nSOURCE[metadata]\npython-versions = ">=3.10"\n'
)
LEGACY = '[package.source]\ntype = "legacy"\nurl = "https://b/simple"\nreference = "b"\n'
PDM_LOCK = (
    '[metadata]\nlock_version = "4.5"\n[[package]]\nname = "torch"\nversion = "2.13.0"\n'
    'files = [{ file = "torch.whl", hash = "sha256:DIGEST" }]\n'
)
PIPFILE_LOCK = (
    '{"_meta": {"sources": [{"name": "a", "url": "https://SOURCE/simple"}]}, "default": {"torch": '
    '{"version": "==2.13.0", "index": "a", "hashes": ["sha256:DIGEST"]}}}'
)
PYLOCK = (
    '[[packages]]\nname = "torch"\nversion = "2.13.0"\nindex = "https://SOURCE/simple"\n'
    'wheels = [{ url = "https://x/torch.whl", hashes = { sha256 = "DIGEST" } }]\n'
)


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "how"),
    [
        ("uv.lock", None, "https://a/simple", "https://b/simple", "from another index"),
        ("uv.lock", None, "aa", "bb", "with other hashes"),
        ("requirements.txt", "torch==2.13.0 \\\n    --hash=sha256:DIGEST\n", "aa", "bb", "with other hashes"),
        ("poetry.lock", POETRY_LOCK, "aa", "bb", "with other hashes"),
        ("poetry.lock", POETRY_LOCK, "", LEGACY, "from another index"),
        ("pdm.lock", PDM_LOCK, "aa", "bb", "with other hashes"),
        ("Pipfile.lock", PIPFILE_LOCK, "aa", "bb", "with other hashes"),
        ("Pipfile.lock", PIPFILE_LOCK, "a", "b", "from another index"),
        ("pylock.toml", PYLOCK, "aa", "bb", "with other hashes"),
        ("pylock.toml", PYLOCK, "a", "b", "from another index"),
    ],
)
def test_the_index_and_the_hashes_of_a_locked_package_belong_to_it(repository, name, text, old, new, how):
    def filled(value):
        if text is None:
            locked = uv_lock(digest=value) if "hash" in how else uv_lock(f'registry = "{value}"')
            return locked.replace("jax", "torch").replace("0.10.1", "2.13.0")
        key, other = ("DIGEST", "SOURCE") if "hash" in how else ("SOURCE", "DIGEST")
        return text.replace(key, value).replace(other, "cc" if other == "DIGEST" else "")

    found = find(repository({name: filled(old)}, {name: filled(new)}))
    [pair] = found.pairs
    assert pair.summary == f"torch 2.13.0 {how} in {name}" and not found.ungated
    before, after = pair.contents
    if "hash" in how:
        assert [one.hashes["torch"] for one in pair.contents] == [{"sha256:aa"}, {"sha256:bb"}]
    else:
        assert before.options != after.options and "https://b/simple" in after.options[0]


def test_hashes_that_only_one_side_has_are_no_change(repository):
    hashed = "torch==2.13.0 --hash=sha256:aa\n"
    found = find(repository({"requirements.txt": "torch==2.13.0\n"}, {"requirements.txt": hashed}))
    assert not (found.pairs or found.ungated)


LOCAL_LOCKS = {
    "uv.lock": LOCK + '[[package]]\nname = "torch"\nversion = "2"\nsource = { path = "torch.whl" }\n',
    "poetry.lock": POETRY.replace("[metadata]", "")
    + '[[package]]\nname = "torch"\nversion = "2"\n[package.source]\ntype = "file"\nurl = "torch.whl"\n[metadata]\n',
    "pdm.lock": '[metadata]\nlock_version = "4.5"\n'
    + LOCK.partition("\n")[2]
    + '[[package]]\nname = "torch"\nversion = "2"\npath = "./torch.whl"\n',
    "Pipfile.lock": '{"default": {"jax": {"version": "=={}"}, "torch": {"path": "./torch"}}}',
    "pylock.toml": LOCK.partition("\n")[2].replace("[[package]]", "[[packages]]")
    + '[[packages]]\nname = "torch"\nversion = "2"\narchive = { path = "torch.whl" }\n',
}


@pytest.mark.parametrize("name", LOCAL_LOCKS)
def test_a_framework_that_is_locked_from_a_local_file_is_not_measured_beside_a_change(repository, name):
    old, new = (LOCAL_LOCKS[name].replace("{}", version) for version in ("0.10.1", "0.10.2"))
    found = find(repository({name: old}, {name: new}))
    assert [pair.summary for pair in found.pairs] == [f"jax 0.10.1 to 0.10.2 in {name}"]
    assert "'torch' is a local package, which is not measured" in found.ungated[0] and found.blocked


def test_a_package_from_a_folder_that_is_an_index_is_refused(repository):
    old = uv_lock('registry = "wheels"')
    found = find(repository({"uv.lock": old}, {"uv.lock": old.replace("0.10.1", "0.10.2")}))
    assert (found.pairs, found.blocked) == ([], True)
    assert (
        "uv.lock: jax comes from the index 'wheels', which is not a URL. Name OLD and NEW."
        in found.ungated[0]
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "numpy = 3\n-r a.list\n"),
        ("requirements.txt", "numpy = 3\n-c more.txt  # why\n"),
        ("env.yml", "dependencies:\n- pip:\n  - -r a.list\n b: [\n"),
    ],
)
def test_an_include_that_changed_in_a_file_that_cannot_be_read_blocks(repository, name, text):
    old = {name: text, "a.list": ONE_OLD, "more.txt": "-r a.list\n-r requirements.txt\n"}
    found = find(repository(old, {"a.list": ONE_NEW}))
    assert (found.pairs, found.blocked) == ([], True)
    assert any(
        line.startswith(f"{name}, line 1: 'numpy = 3'") or "env.yml: cannot be parsed" in line
        for line in found.ungated
    )


# what cannot be read

SHA_URL = f"https://example.org/{SHA}/1.txt"
PIP_CONDA = "dependencies:\n- pip:\n  - {}\n"


@pytest.mark.parametrize(
    ("name", "text", "old", "new"),
    [
        ("requirements.txt", "numpy\n-r {}\n", "https://example.org/1/r.txt", "https://example.org/2/r.txt"),
        ("requirements.txt", "numpy\n-r {}\n", "/abs/o.txt", "/abs/n.txt"),
        (
            "requirements.txt",
            "numpy\n--constraint {}\n",
            "https://example.org/c-1.txt",
            "https://example.org/c-2.txt",
        ),
        ("requirements.txt", "numpy\n-r {}\n", "../shared/1.txt", "../shared/2.txt"),
        ("requirements.txt", "numpy\n-r {}\n", "${HOME}/1.txt", "${HOME}/2.txt"),
        ("requirements.txt", "numpy\n{}\n", "", "-r https://example.org/1/r.txt"),
        ("environment.yml", PIP_CONDA, "-r https://example.org/1.txt", "-r https://example.org/2.txt"),
        ("environment.yml", PIP_CONDA, "numpy = 1", "numpy = 2"),
        ("setup.py", "x = read('{}')\nsetup(install_requires=x)\n", "a", "b"),
        ("poetry.lock", POETRY + "x = {}\n", "[", "]"),
    ],
)
def test_what_cannot_be_read_and_changed_blocks_whatever_it_names(repository, name, text, old, new):
    other = {"train/requirements.txt": ONE_OLD}
    found = find(repository({**other, name: text.replace("{}", old)}, {name: text.replace("{}", new)}))
    [line] = found.ungated
    assert name in line and (found.pairs, found.blocked) == ([], True)


@pytest.mark.parametrize(
    ("base", "reference", "blocked"),
    [
        (ONE_OLD, "https://example.org/1.txt", True),
        (ONE_OLD, "../../shared/1.txt", True),
        (ONE_OLD, SHA_URL, False),
        (ONE_OLD, "missing.txt", False),
        ("numpy\n", "https://example.org/1.txt", False),  # another file names the frameworks
    ],
)
def test_an_include_that_cannot_be_read_and_is_the_same_is_named_and_blocks_if_it_may_have_changed(
    repository, base, reference, blocked
):
    files = {"b/requirements.txt": f"{base}-r {reference}\n", "a/requirements.txt": ONE_OLD}
    found = find(repository(files, {}))
    assert found.blocked is blocked and not found.pairs
    [line] = found.ungated if blocked else found.notes
    assert reference in line and line.startswith(
        "b/requirements.txt, line 2" if blocked else "not compared: b/req"
    )
    assert not (found.notes if blocked else found.ungated)


def test_an_include_that_git_does_not_list_blocks(repository):
    old = {".gitignore": "pins/\n", "requirements.txt": "-r pins/a.txt\n", "b.txt": ONE_OLD}
    folder = repository(old, {"pins/a.txt": "numpy\n"})
    [line] = find(folder).ungated
    assert line.startswith("At revision 'main': requirements.txt, line 1") and find(folder).blocked


def test_a_file_without_a_framework_blocks_for_its_include_if_no_file_names_one(repository):
    found = find(repository({"requirements.txt": "numpy\n-c https://example.org/1.txt\n"}, {}))
    assert found.blocked and "The line is the same" in found.ungated[0]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("Dockerfile", "FROM x\nRUN pip install 'jax[cuda12]=={}'\n", 2),
        ("docker/gpu.Dockerfile", "RUN conda install pytorch={}\n", 1),
        ("install.sh", "pip install https://example.org/torch-{}-cp311-none-any.whl\n", 1),
        (".github/workflows/x.yml", "jobs:\n  run: pip install jax=={}\n", 2),
        ("docs/install.txt", "$ pip install jax>={}\n", 1),
        ("n.ipynb", '{{"source": ["!pip install jax=={}"]}}\n', 1),
    ],
)
def test_a_changed_command_that_names_a_framework_is_shown_although_it_is_not_compared(
    repository, name, text, line
):
    old, new = (text.replace("{}", version) for version in ("0.10.1", "0.10.2"))
    found = find(repository({"requirements.txt": ONE_OLD, name: old}, {name: new}))
    [note] = found.notes
    assert note.startswith(f"not compared: {name}, line {line}: ") and note.endswith(" changed")
    assert (found.pairs, found.ungated, found.files) == ([], [], ["requirements.txt"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conda-linux-64.lock", EXPLICIT.replace("{}", "1") + "https://x/noarch/numpy-{}-py_0.conda\n"),
        (
            "pixi.lock",
            PIXI_LOCK.replace("{}", "pytorch-2.4.0-cpu") + "- conda: https://x/numpy-{}-py_0.conda\n",
        ),
    ],
)
def test_a_list_with_a_framework_that_is_not_read_is_named_if_another_package_in_it_changed(
    repository, name, text
):
    old, new = (text.replace("{}", version) for version in ("1.26", "2.0"))
    found = find(repository({"requirements.txt": ONE_OLD, name: old}, {name: new}))
    assert found.notes == [f"not compared: {name} changed, and Stele does not read such a file"]
    assert not (found.pairs or found.ungated)


NEWER = "[tool.uv]\nexclude-newer = '{}'\n"


@pytest.mark.parametrize(
    ("files", "text", "name", "setting"),
    [
        ({}, PROJECT.replace("{}", "jax") + NEWER, "pyproject.toml", "exclude-newer"),
        (
            {},
            PROJECT.replace("{}", "jax") + "[tool.uv.pip]\nprerelease = '{}'\n",
            "pyproject.toml",
            "pip.prerelease",
        ),
        (
            {"a/requirements.txt": "torch\n"},
            "[[index]]\nurl = 'https://example.org/{}'\n",
            "uv.toml",
            "index",
        ),
        (
            {"a/requirements.txt": "torch\n"},
            "override-dependencies = ['numpy=={}']\n",
            "a/uv.toml",
            "override",
        ),
        (
            {"a/requirements.txt": "torch\n"},
            "[global]\nindex-url = https://x/{}\n",
            "pip.conf",
            "a setting of pip",
        ),
    ],
)
def test_a_setting_that_decides_which_version_is_installed_blocks(repository, files, text, name, setting):
    found = find(repository({**files, name: text.replace("{}", "2025")}, {name: text.replace("{}", "2026")}))
    [line] = found.ungated
    assert line.startswith(f"{name}: {setting}") and (found.pairs, found.blocked) == ([], True)


def test_a_setting_that_a_lock_file_or_no_framework_is_subject_to_is_no_change(repository):
    project = PROJECT.replace("{}", "jax") + NEWER
    old = {
        "pyproject.toml": project,
        "uv.lock": LOCK.replace("{}", "1") + MEMBERS,
        "a/uv.toml": "resolution = 'x'\n",
    }
    new = {"pyproject.toml": project.replace("{}", "2026"), "a/uv.toml": "resolution = 'y'\n"}
    found = find(repository(old, new))
    assert not (found.pairs or found.ungated)


def test_a_large_file_that_names_a_framework_is_read_and_a_larger_one_is_named(repository, monkeypatch):
    monkeypatch.setattr(trees, "LARGEST_UNNAMED", 100)
    monkeypatch.setattr(trees, "LARGEST", 1000)
    more = "numpy>=1\n" * 20
    folder = repository(
        {"pins.txt": ONE_OLD + more, "data.txt": "x"}, {"pins.txt": ONE_NEW + more, "data.txt": "y" * 500}
    )
    assert [pair.summary for pair in find(folder).pairs] == ["jax 0.10.1 to 0.10.2 in pins.txt"]
    (folder / "data.txt").write_text("y" * 5000)
    assert find(folder).notes == ["not compared: data.txt is larger than 1000 bytes"]


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
