"""Lock files of every format: what is read, and what is refused."""

import pytest

from stele.environments.lockfiles import read
from stele.errors import SteleError
from tests.support.lock_files import PEP_751, read_sample

EXPECTED = {
    "requirements.txt": (
        "==3.11.*",
        "numpy==1.26.4",
        "transformers<5,>=4.44",
        "torch==2.5.1",
        'triton==3.1.0; platform_system == "Linux" and platform_machine == "x86_64"',
        "jax[cuda12]==0.4.35",
    ),
    "pylock.toml": (">=3.10", "torch==2.5.1", 'triton==3.1.0; sys_platform == "linux"'),
    "poetry.lock": (
        "<4,>=3.10",
        'colorama==0.4.6; platform_system == "Windows"',
        "keras==3.6.0",
        "numpy==1.26.4",
        "tensorflow==2.18.0",
        'tensorflow-intel==2.18.0; platform_system == "Windows"',
    ),
    "poetry-1.1.lock": (
        "<3.9,>=3.8",
        'colorama==0.4.4; platform_system == "Windows"',
        "opt-einsum==3.3.0",
        "torch==1.10.0",
        "tqdm==4.62.3",
        "typing-extensions==4.0.1",
    ),
    "Pipfile.lock": ("==3.11.*", "tensorflow==2.18.0", 'triton==3.1.0; sys_platform == "linux"', "tqdm"),
    "pdm.lock": (
        "==3.11.*",
        "jax==0.4.35",
        'jax==0.4.35; sys_platform == "linux"',
        "jaxlib==0.4.35",
        'colorama==0.4.6; platform_system == "Windows"',
    ),
    "environment.yml": (
        "==3.11.*",
        "matplotlib==3.9.2",
        "numpy==1.26.4",
        "torch==2.5.1",
        "scipy==1.14.*",
        "pillow<12,>=10",
        "tqdm",
        "pip==24.2",
        "transformers==4.46.0",
        "keras==3.6.0",
    ),
    "pyproject.toml": (">=3.10", "torch==2.5.1", 'jax[cuda12]>=0.4.30; sys_platform == "linux"'),
    "pyproject-poetry.toml": (
        "<3.12,>=3.11",
        "torch==2.5.1",
        'transformers[torch]<5,>=4.44; sys_platform == "linux"',
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_lock_file_gives_its_main_packages_and_its_python(name):
    locked = read(name, read_sample(name), read_sample)
    assert (locked.python, *locked.requirements) == EXPECTED[name]


@pytest.mark.parametrize(
    "line",
    [
        "--index-url",
        "--no-index x",
        "--find-links absent",
        "--report x",
        "-x https://example.org",
        "-e .",
        ".[gpu]",
        "layers/layers-1-py3-none-any.whl",
        "--editable git+https://github.com/pytorch/pytorch#egg=torch",
        "./layers",
        "../layers.whl",
        "git+https://github.com/pytorch/pytorch",
        "torch @ git+https://github.com/pytorch/pytorch@v2.5.1",
        "https://example.org/torch-2.5.1-py3-none-any.whl",
        "torch==",
        "torch==2.5.1 --config-settings a=b",
        "torch = 2.5.1",
        "torch\0==2.5.1",
        "-r https://example.org/requirements.txt",
        "-r /etc/passwd",
        "-r a\0b.txt",
    ],
)
def test_an_error_names_the_file_and_quotes_the_line(line):
    with pytest.raises(SteleError) as caught:
        read("deps/requirements.txt", f"numpy==1.26.4\n# a comment\n{line}\n", {}.__getitem__)
    assert str(caught.value).startswith(f"deps/requirements.txt, line 3: {line!r} ")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "# nothing\n"),
        ("uv.lock", "version = 1"),
        ("poetry.lock", "package = []"),
        ("pdm.lock", ""),
        ("Pipfile.lock", "{}"),
        ("pylock.toml", PEP_751 + "packages = []"),
        ("pyproject.toml", "[project]\nname = 'x'"),
        ("environment.yml", "dependencies: [python=3.11, cudatoolkit]"),
        ("environment.yml", "dependencies:"),
    ],
)
def test_a_file_without_a_package_is_refused(name, content):
    with pytest.raises(SteleError, match=f"^{name} names no package"):
        read(name, content)


def test_a_file_of_an_unknown_kind_is_refused():
    with pytest.raises(SteleError, match=r"^notes.md is not a supported lock file"):
        read("notes.md", "torch==2.5.1 is what we use")


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("uv.lock", "version = 1\nname =\n", "line 2"),
        ("Pipfile.lock", '{\n"default": }', "line 2"),
        ("environment.yml", "dependencies:\n  - a\n b: [", "line 3"),
        ("environment.yml", "a: &x [1]\nb: *x", "line 2: the YAML alias '*x'"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_refused_with_the_line(name, content, place):
    with pytest.raises(SteleError) as caught:
        read(name, content)
    assert str(caught.value).startswith(name) and place in str(caught.value)
