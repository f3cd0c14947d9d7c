"""``--changed``: which files of a repository are compared, what is gated, and what cannot be."""

import pytest

from stele.environments import trees
from stele.errors import SteleError
from tests.support.repositories import (
    CFG,
    JAX_OF_PEP_751,
    JAXLIB,
    LOCK,
    NEW,
    OLD,
    ONE_NEW,
    ONE_OLD,
    PEP_751,
    POETRY,
    PROJECT,
    SETUP,
    find,
    uv_lock,
)

CONDA = "name: x\nchannels: [conda-forge]\ndependencies:\n- python=3.11\n- pip:\n  - "


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
        ("pylock.gpu.toml", PEP_751 + JAX_OF_PEP_751),
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
    with pytest.raises(SteleError, match="There is nothing to compare: neither 'main' nor the working tree has"):
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
    assert note.startswith("changed, but not gated: numpy 1.26.4 to 2.1.0 in requirements.txt. The built-in tasks do")


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
def test_a_framework_that_is_added_beside_a_gate_needs_to_be_measured_in_it(repository, new, whole_files, blocked):
    found = find(repository({"requirements.txt": OLD, "gpu.txt": "numpy>=1\n"}, new), whole_files=whole_files)
    assert (len(found.pairs), found.blocked) == (1, blocked)
    assert "has nothing to be compared with: the revision does not name" in found.ungated[0]


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
    folder = repository({"requirements.txt": "-r base.txt\njax==1\n"}, {"requirements.txt": "-r base.txt\njax==2\n"})
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
    folder = repository({"requirements.txt": f"{OLD}torch==1\n"}, {"requirements.txt": f"{NEW}torch==1\nflax==1\n"})
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


def test_a_file_that_cannot_be_installed_does_not_prevent_the_gate_of_another(repository):
    url = "x @ https://example.org/x-1-py3-none-any.whl\n"
    folder = repository({"a.txt": OLD, "b.txt": url + OLD}, {"a.txt": NEW, "b.txt": url + NEW})
    found = find(folder)
    assert ([pair.name for pair in found.pairs], found.blocked) == (["a.txt"], True)
    assert found.ungated == [
        "At revision 'main': b.txt, line 1: 'x @ https://example.org/x-1-py3-none-any.whl' is installed from a URL. "
        "Pass --allow-vcs to allow this."
    ]


def test_a_file_that_is_too_large_is_refused_and_not_read(repository, monkeypatch):
    monkeypatch.setattr(trees, "LARGEST", 100)
    folder = repository({"requirements.txt": ONE_OLD}, {"requirements.txt": ONE_NEW + "#" * 100})
    with pytest.raises(SteleError, match=r"requirements.txt has 112 bytes; at most 100 are read"):
        find(folder)


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


@pytest.mark.parametrize("old", ["./vendor/jaxlib-0.10.1-py3-none-any.whl\n", "jaxlib==0.10.1\n"])
@pytest.mark.parametrize("whole_files", [True, False])
def test_a_framework_in_a_local_file_is_not_measured_beside_a_change(repository, old, whole_files):
    new = "./vendor/jaxlib-0.10.1-py3-none-any.whl\n" + ONE_NEW
    found = find(repository({"requirements.txt": old + ONE_OLD}, {"requirements.txt": new}), whole_files=whole_files)
    assert "jaxlib-0.10.1-py3-none-any.whl' is a local package, which is not measured" in found.ungated[-1]
    assert found.blocked


@pytest.mark.parametrize("name", ["requirements.txt", "deps/ml.txt"])
def test_a_repository_without_a_name_is_a_package_that_needs_permission(repository, name):
    clip = "git+https://github.com/openai/CLIP.git\n"
    folder = repository({name: clip + OLD}, {name: clip + NEW})
    refused = find(folder)
    assert (refused.pairs, refused.blocked) == ([], True)
    assert "CLIP.git' is installed from a URL. Pass --allow-vcs" in refused.ungated[0]
    [pair] = find(folder, allow_vcs=True).pairs
    assert pair.contents[1].requirements[0] == "clip @ git+https://github.com/openai/CLIP.git"


def test_a_package_from_a_folder_that_is_an_index_is_refused(repository):
    old = uv_lock('registry = "wheels"')
    found = find(repository({"uv.lock": old}, {"uv.lock": old.replace("0.10.1", "0.10.2")}))
    assert (found.pairs, found.blocked) == ([], True)
    assert "uv.lock: jax comes from the index 'wheels', which is not a URL. Name OLD and NEW." in found.ungated[0]
