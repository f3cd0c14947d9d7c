"""Changed lines that name a framework and that nothing reads."""

import pytest

from stele.environments import trees
from tests.support.repositories import LOCK, MEMBERS, OLD, ONE_NEW, ONE_OLD, POETRY, PROJECT, SHA, find

EXPLICIT = "@EXPLICIT\nhttps://conda.anaconda.org/conda-forge/noarch/jax-{}-pyhd8ed1ab_0.conda#0123456789abcdef\n"
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
def test_a_changed_line_that_names_a_framework_and_is_not_understood_blocks(repository, name, text, old, new, place):
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


def test_what_a_lock_file_beside_it_says_covers_a_pipfile(repository):
    def both(version):
        lock = '{"_meta": {"pipfile-spec": 6}, "default": {"torch": {"version": "==VERSION"}}}'
        return {
            "Pipfile": f"[packages]\ntorch = '=={version}'\n",
            "Pipfile.lock": lock.replace("VERSION", version),
        }

    found = find(repository(both("2.4"), both("2.5")))
    assert ([pair.name for pair in found.pairs], found.ungated) == (["Pipfile.lock"], [])


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
        line.startswith(f"{name}, line 1: 'numpy = 3'") or "env.yml: cannot be parsed" in line for line in found.ungated
    )


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
    assert reference in line and line.startswith("b/requirements.txt, line 2" if blocked else "not compared: b/req")
    assert not (found.notes if blocked else found.ungated)


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
def test_a_changed_command_that_names_a_framework_is_shown_although_it_is_not_compared(repository, name, text, line):
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
def test_a_list_with_a_framework_that_is_not_read_is_named_if_another_package_in_it_changed(repository, name, text):
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
