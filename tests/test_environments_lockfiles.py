"""Lock files: every format, what is refused, and hostile content."""

import contextlib
import platform
import re
import time
from pathlib import Path

import pytest

from stele.environments import lockfiles
from stele.environments.lockfiles import Locked, read
from stele.errors import SteleError

SAMPLES = Path(__file__).parent / "lockfiles"
CONSTRAINT = "ml-dtypes==0.4.1"
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


def read_sample(path):
    return (SAMPLES / path).read_text()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_lock_file_gives_its_main_packages_and_its_python(name):
    locked = read(name, read_sample(name), read_sample)
    assert (locked.python, *locked.requirements) == EXPECTED[name]


def test_a_uv_lock_gives_what_the_project_needs_with_the_markers_of_the_dependents():
    locked = read("uv.lock", read_sample("uv.lock"))
    fork = 'python_full_version >= "3.11" and sys_platform'
    assert locked == Locked(
        (
            'colorama==0.4.6; sys_platform == "win32"',
            'jax==0.4.35; sys_platform == "linux"',
            'jax-cuda12-plugin==0.4.35; platform_machine == "x86_64" and sys_platform == "linux"',
            'numpy==1.26.4; python_full_version < "3.11" and python_full_version < "3.11"',
            f'numpy==2.1.3; python_full_version >= "3.11" and (({fork} == "linux") or ({fork} != "linux"))',
            "torch==2.5.1",
            "tqdm==4.67.0",
            'triton==3.1.0; platform_machine == "x86_64" and sys_platform == "linux"',
        ),
        ">=3.10",
        "uv",
    )


@pytest.mark.parametrize(
    ("sample", "name"),
    [
        ("uv.lock", "old.lock"),
        ("poetry.lock", "old.lock"),
        ("pdm.lock", "old.lock"),
        ("Pipfile.lock", "old.lock"),
        ("constraints.txt", "old.lock"),
        ("pylock.toml", "pylock.gpu.toml"),
        ("pyproject.toml", "old.toml"),
        ("environment.yml", "cluster.yaml"),
    ],
)
def test_the_content_decides_if_the_name_does_not(sample, name):
    assert read(name, read_sample(sample)) == read(sample, read_sample(sample))


def test_constraints_are_kept_apart():
    locked = read("requirements.txt", read_sample("requirements.txt"), read_sample)
    assert locked.constraints == (CONSTRAINT,) and CONSTRAINT not in locked.requirements


def test_included_files_are_found_relative_to_the_file_that_names_them():
    files = {"../base.txt": "-r more/gpu.txt\nnumpy==1.26.4", "../more/gpu.txt": "torch==2.5.1"}
    locked = read("deps/dev.txt", "-r ../base.txt", files.__getitem__)
    assert locked.requirements == ("torch==2.5.1", "numpy==1.26.4")


def test_a_comment_ends_a_continued_line_and_the_end_of_the_file_too():
    text = "torch==2.5.1 \\\n  # a comment\nnumpy==1.26.4 ; \\\nos_name != 'dos' # why\njax \\"
    assert read("a.txt", text).requirements == ("torch==2.5.1", 'numpy==1.26.4; os_name != "dos"', "jax")


@pytest.mark.parametrize("line", ["-r a.txt", "-ra.txt", "--requirement a.txt", "--requirement=a.txt"])
def test_every_form_of_include_is_followed(line):
    assert read("b.txt", line, lambda path: {"a.txt": "torch==2.5.1"}[path]).requirements == ("torch==2.5.1",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("requirements.txt", True),
        ("requirements.in@main", True),
        ("setup.cfg", True),
        ("setup.py@main", True),
        ("net.py@main", False),
        ("deps/uv.lock", True),
        ("pylock.gpu.toml", True),
        ("environment.yaml", True),
        ("uv.lock@main", True),
        ("requirements.txt@HEAD~1", True),
        ("a@b/uv.lock", True),
        ("jax==0.9.2", False),
        ("torch==2.5.1.lock", False),
        ("keras-jax@keras==3.14.1", False),
        ("torch@/opt/venv/bin/python3.12", False),
        ("/opt/venv", False),
        ("torch", False),
    ],
)
def test_a_lock_file_is_recognized_by_its_name(text, expected):
    assert lockfiles.is_lockfile(text) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("uv.lock", True),
        ("a/dev-requirements.txt", True),
        ("requirements_gpu.txt", True),
        ("requirements/base.txt", True),
        ("Requirements.txt", True),
        ("a/b/c/d/requirements.in", True),
        ("setup.cfg", True),
        ("environment-gpu.yml", True),
        ("pylock.gpu.toml", True),
        ("notes.txt", False),
        ("mkdocs.yml", False),
        ("tests/jax.lock", False),
    ],
)
def test_only_conventional_names_are_taken_for_the_packages_of_a_repository(path, expected):
    assert lockfiles.is_conventional(path) is expected


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


def test_an_error_in_an_included_file_names_that_file():
    with pytest.raises(SteleError, match=r"^deps/common.txt, line 1: '-e .'"):
        read("deps/requirements.txt", "-r common.txt", lambda path: "-e .")


def test_an_include_that_cannot_be_read_is_an_error():
    with pytest.raises(
        SteleError, match=r"line 1: '-r common.txt' names a file that cannot be read: No such"
    ):
        read("requirements.txt", "-r common.txt", lambda path: (SAMPLES / "absent" / path).read_text())


def test_files_that_include_each_other_are_an_error():
    files = {"a.txt": "-r b.txt", "b.txt": "-r a.txt"}
    with pytest.raises(SteleError, match="the files include each other"):
        read("top.txt", "-r a.txt", files.__getitem__)


def test_an_endless_chain_of_includes_is_an_error():
    with pytest.raises(SteleError, match="is nested too deeply"):
        read("top.txt", "-r a.txt", lambda path: f"-r a{path}")


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
            '[[packages]]\nname = "x"\nvcs = { type = "git", url = "https://example.org/x", commit-id = "abc" }',
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


def test_a_wheel_for_a_different_platform_is_refused():
    wheel = "torch-2.5.1%2Bcpu-cp311-cp311-win_amd64.whl"
    with pytest.raises(SteleError, match="is a wheel for win_amd64, not for this machine"):
        read("a.txt", f"torch @ https://download.pytorch.org/whl/cpu/{wheel}", allow_vcs=True)


@pytest.mark.skipif(platform.system() != "Linux", reason="the wheel is for Linux")
def test_a_wheel_for_this_platform_is_accepted():
    wheel = f"torch-2.5.1-cp311-cp311-linux_{platform.machine()}.whl"
    line = f"torch @ https://example.org/{wheel}"
    assert read("a.txt", line, allow_vcs=True).requirements == (line,)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "torch==2.5.1\nTorch==2.4.1"),
        ("a.txt", "torch==2.5.1 ; sys_platform == 'linux'\ntorch==2.4.1; sys_platform == 'linux'"),
        ("environment.yml", "dependencies: [pytorch=2.5.1, {pip: [torch==2.4.1]}]"),
        ("Pipfile.lock", '{"default": {"torch": {"version": "==2.5.1"}, "Torch": {"version": "==2.4.1"}}}'),
    ],
)
def test_two_different_pins_of_a_package_are_refused(name, content):
    with pytest.raises(SteleError, match=r"(?i)pins torch twice: 'torch==2.5.1.* and 'torch==2.4.1"):
        read(name, content)


@pytest.mark.parametrize(
    "content", ["torch==2.5\ntorch==2.5.0", "torch==2.5; os_name=='nt'\ntorch==2.4; os_name!='nt'"]
)
def test_equal_pins_and_pins_under_different_markers_are_kept(content):
    assert len(read("a.txt", content).requirements) == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "# nothing\n"),
        ("uv.lock", "version = 1"),
        ("poetry.lock", "package = []"),
        ("pdm.lock", ""),
        ("Pipfile.lock", "{}"),
        ("pylock.toml", ""),
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


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pytorch", "torch"),
        ("pytorch==2.5.1", "torch==2.5.1"),
        ("pytorch 2.5.1", "torch==2.5.1"),
        ("numpy =1.26", "numpy==1.26.*"),
        ("numpy=1.26.*", "numpy==1.26.*"),
        ("numpy>=1.24,<2", "numpy<2,>=1.24"),
        ("numpy >= 1.24", "numpy>=1.24"),
        ("numpy=*", "numpy"),
        ("librosa=0.10.2", "librosa==0.10.2"),
        ("msgpack-python=1.0.8=py311h52f7536_0", "msgpack==1.0.8"),
    ],
)
def test_a_conda_package_has_the_name_and_the_versions_of_pypi(line, expected):
    assert read("environment.yml", f"dependencies: ['{line}']").requirements == (expected,)


@pytest.mark.parametrize(
    "line", ["a|b", "numpy>=1|<2", "numpy[version=2]", "", "pytorch=2.5.1foo", "a b c d"]
)
def test_a_conda_line_that_is_not_understood_is_refused(line):
    with pytest.raises(SteleError, match=r"^environment.yml: '"):
        read("environment.yml", f"dependencies: ['{line}', tqdm]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("^3.10", "<4,>=3.10"),
        ("^0.4.1", "<0.5,>=0.4.1"),
        ("^0.0.3", "<0.0.4,>=0.0.3"),
        ("~3.10", "<3.11,>=3.10"),
        ("~3", "<4,>=3"),
        ("3.11", "==3.11.*"),
        (">=3.10,<3.13", "<3.13,>=3.10"),
        ("^3.9 || ~3.12", "<3.13,>=3.12"),
        ("*", None),
    ],
)
def test_versions_in_the_notation_of_poetry_are_translated(text, expected):
    content = f'[[package]]\nname = "torch"\nversion = "2.5.1"\n[metadata]\npython-versions = "{text}"'
    assert read("poetry.lock", content).python == expected


def test_in_an_outline_nothing_is_refused_and_every_requirement_has_a_place():
    content = (
        "-e .\n--unknown x\nTorch==2.5.1\n\nx @ https://example.org/x\n-e git+https://example.org/y#egg=y\n"
    )
    outline = lockfiles.outline("a.txt", content)
    assert [name.partition(" ")[0].strip("@") for name in outline.requirements] == ["Torch==2.5.1", "x", "y"]
    assert [*outline.places.values()] == ["a.txt, line 3", "a.txt, line 5", "a.txt, line 6"]


SETUP = """
from setuptools import setup
EXTRA: list = ["jax==0.10.2"]
CORE = ["numpy", "torch==2.13.0"]
setup(install_requires=CORE + ["flax"], extras_require={"jax": EXTRA}, python_requires=">=3.10")
"""


def test_a_setup_py_is_read_as_text():
    locked = read("setup.py", SETUP, extras=["jax"])
    assert locked.requirements == ("numpy", "torch==2.13.0", "flax", "jax==0.10.2")
    assert locked.python == ">=3.10"
    assert lockfiles.extras_of("setup.py", SETUP) == ["jax"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("setup(install_requires=open('stolen', 'w').name)", "line 1: the value is computed"),
        ("import os\nsetup(install_requires=[os.abort()])", "line 2: the value is computed"),
        ("A = B\nB = A\nsetup(install_requires=A)", "nested too deeply"),
        ("setup(install_requires=", "it is not valid Python"),
        ("setup(install_requires=[1])", "must be of type str, but it is int"),
        ("setup()", "names no package"),
        ("setup(install_requires=" + "[" * 5000 + ")", "setup.py"),
    ],
)
def test_a_setup_py_that_computes_its_packages_is_refused_and_never_executed(code, message):
    with pytest.raises(SteleError, match=r"^setup.py") as caught:
        read("setup.py", code)
    assert message in str(caught.value) and not Path("stolen").exists()


CFG = """
[options]
python_requires = >=3.10
install_requires =
    torch==2.13.0; python_version >= "3.8"
    # why
    numpy
[options.extras_require]
cpu = jax==0.10.2; flax
"""


def test_a_setup_cfg_is_read():
    locked = read("setup.cfg", CFG, extras=["cpu"])
    assert locked.requirements == (
        'torch==2.13.0; python_version >= "3.8"',
        "numpy",
        "jax==0.10.2",
        "flax",
    )
    assert locked.python == ">=3.10"


@pytest.mark.parametrize(
    "content", ["[options", "x", "[options]\ninstall_requires = torch ==\n", "[a]\nb = %(c)s\n"]
)
def test_a_broken_setup_cfg_is_refused(content):
    with pytest.raises(SteleError, match=r"^setup.cfg"):
        read("setup.cfg", content)


# hostile content

NAMES = [
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "Pipfile.lock",
    "pylock.toml",
    "pyproject.toml",
    "environment.yml",
    "setup.cfg",
    "setup.py",
]
TOML_VALUES = ["3", "true", '"x"', "[3]", "[[3]]", "[{}]", "{}", "{ x = 3 }", "[{ name = 3 }]", "1979-05-27"]
TOML_KEYS = [
    "package",
    "packages",
    "metadata",
    "project",
    "tool",
    "requires-python",
    "default-groups",
    "manifest",
]
PACKAGE_KEYS = [
    "name", "version", "source", "dependencies", "optional-dependencies", "resolution-markers", "marker", "markers",
    "groups", "category", "optional", "vcs", "archive", "directory", "git", "url", "revision", "path",
]  # fmt: skip


def read_or_refuse(name, content):
    """The content is read, or refused with a short message; no other error is raised."""
    for look in (lockfiles.outline, lambda *text: lockfiles.mentions(*text, re.compile("torch|jax|x"))):
        with contextlib.suppress(SteleError):
            look(name, content)
    try:
        assert read(name, content, lambda path: "").requirements
    except SteleError as error:
        assert name in str(error) and len(str(error)) < 1000


@pytest.mark.parametrize("value", TOML_VALUES)
@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.endswith((".toml", ".lock")) and "Pip" not in name]
)
def test_toml_with_values_of_a_wrong_type_is_harmless(name, value):
    for key in TOML_KEYS:
        read_or_refuse(name, f"{key} = {value}")
    table = "packages" if name == "pylock.toml" else "package"
    for key in PACKAGE_KEYS:
        rest = "".join(f'{other} = "x"\n' for other in ("name", "version") if other != key)
        read_or_refuse(name, f"[[{table}]]\n{rest}{key} = {value}")
    for key in ("python", "x"):
        read_or_refuse(name, f"[tool.poetry.dependencies]\n{key} = {value}")


@pytest.mark.parametrize(
    "value", ["3", "true", '"x"', "[3]", "[[3]]", "[{}]", "{}", '{"x": 3}', "null", "1e999"]
)
def test_json_and_yaml_with_values_of_a_wrong_type_are_harmless(value):
    read_or_refuse("Pipfile.lock", value)
    read_or_refuse("environment.yml", value)
    read_or_refuse("environment.yml", f"dependencies: {value}")
    read_or_refuse("environment.yml", f"dependencies: [{value}, {{pip: {value}}}, {{{value}: 1}}]")
    for key in ("default", "_meta"):
        read_or_refuse("Pipfile.lock", f'{{"{key}": {value}}}')
    for key in ("version", "markers", "git", "file", "path"):
        read_or_refuse("Pipfile.lock", f'{{"default": {{"x": {{"{key}": {value}}}}}}}')
    read_or_refuse("Pipfile.lock", f'{{"_meta": {{"requires": {{"python_version": {value}}}}}}}')


@pytest.mark.parametrize("name", [*NAMES, "a.txt", "a.lock"])
@pytest.mark.parametrize(
    "content",
    [
        "\0",
        "torch==2.5.1\0",
        "a = " + "[" * 100_000,
        "a = " + "{a=" * 10_000,
        "[" * 100_000,
        '{"a":' * 100_000,
        "- " * 10_000,
        "[a" + ".a" * 3_000 + "]",
        "9" * 10_000,
        "a = " + "9" * 10_000,
        "a" * 200_000,
        " " * 200_000 + "x",
        "#" * 200_000,
        "\\\n" * 50_000,
        "torch" + "=" * 100_000,
        "torch ; " + "(" * 10_000 + "os_name == 'nt'" + ")" * 10_000,
        "torch @ http://[",
    ],
    ids=range(17),
)
def test_deep_long_and_broken_content_is_harmless(name, content):
    begin = time.monotonic()
    read_or_refuse(name, content)
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize(
    "content",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\ndependencies: *c",
        "a: &a {x: 1}\nb: &b {<<: [*a, *a]}\nc: {<<: [*b, *b]}",
        "dependencies: [!!python/object/apply:os.system [true]]",
        "dependencies: [!!bool perhaps]",
        "dependencies: [!!timestamp never]",
        "dependencies: [!!int '']",
        "dependencies: [2024-99-99]",
        "? [a]\n: b",
        "dependencies: [torch==2.5.1\n...\n---\nx: 1",
        "dependencies: ['  " + " " * 100_000 + "']",
        "dependencies: [{pip: ['torch==2.5.1\n--index-url x']}]",
    ],
)
def test_hostile_yaml_is_refused(content):
    with pytest.raises(SteleError, match=r"^environment.yml"):
        read("environment.yml", content)


def test_the_text_of_a_pin_cannot_add_a_line():
    for version in (r"2.5.1\n--index-url https://example.org", r"2.5.1 @ https://example.org/x.whl"):
        with pytest.raises(SteleError, match="is not a requirement"):
            read("uv.lock", f'[[package]]\nname = "torch"\nversion = "{version}"')
    with pytest.raises(SteleError, match="--allow-vcs"):
        read("uv.lock", '[[package]]\nname = "torch @ https://example.org/x"\nversion = "1"')


@pytest.mark.parametrize(
    "marker",
    ["extra == ", "extra == 'x' and (", "__import__('os').abort() or extra", "extra.x == 1", "-" * 5000],
)
def test_a_broken_marker_is_refused(marker):
    with pytest.raises(SteleError, match="is not a requirement"):
        read("pylock.toml", f'[[packages]]\nname = "torch"\nversion = "2"\nmarker = "extra {marker}"')


def test_many_ways_to_need_a_package_take_little_time():
    layers, width = 30, 4
    edges = [
        ", ".join(
            f"{{ name = 'p{layer + 1}-{to}', marker = \"os_name == '{layer}{to}'\" }}" for to in range(width)
        )
        for layer in range(layers)
    ]
    content = "[[package]]\nname = 'root'\nsource = { editable = '.' }\ndependencies = [{ name = 'p0-0' }]\n"
    for layer in range(layers):
        for index in range(width):
            needs = f"dependencies = [{edges[layer]}]\n" if layer + 1 < layers else ""
            content += f"[[package]]\nname = 'p{layer}-{index}'\nversion = '1'\n{needs}"
    begin = time.monotonic()
    assert len(read("uv.lock", content).requirements) == 1 + (layers - 1) * width
    assert time.monotonic() - begin < 20


LOCKS_WITH_EXTRAS = {
    "uv.lock": (
        '[[package]]\nname = "app"\nversion = "1"\nsource = { virtual = "." }\n'
        '[package.optional-dependencies]\ncpu = [{ name = "torch" }]\nold-gpu = [{ name = "jax" }]\n'
        '[[package]]\nname = "torch"\nversion = "2.4.0"\ndependencies = [{ name = "sympy" }]\n'
        '[[package]]\nname = "sympy"\nversion = "1.13"\n[[package]]\nname = "jax"\nversion = "0.4.35"\n'
    ),
    "poetry.lock": (
        '[[package]]\nname = "torch"\nversion = "2.4.0"\noptional = true\ngroups = ["main"]\n'
        'markers = "extra == \\"cpu\\""\n[package.dependencies]\nsympy = "*"\n'
        '[[package]]\nname = "sympy"\nversion = "1.13"\noptional = true\ngroups = ["main"]\n'
        'markers = "extra == \\"cpu\\""\n'
        '[[package]]\nname = "jax"\nversion = "0.4.35"\noptional = true\ngroups = ["main"]\n'
        'markers = "extra == \\"old-gpu\\""\n[extras]\ncpu = ["torch (>=2,<3)"]\nold-gpu = ["jax"]\n'
    ),
    "old/poetry.lock": (
        '[[package]]\nname = "torch"\nversion = "2.4.0"\noptional = true\n'
        '[package.dependencies]\nsympy = "*"\n'
        '[[package]]\nname = "sympy"\nversion = "1.13"\noptional = true\n'
        '[[package]]\nname = "jax"\nversion = "0.4.35"\noptional = true\n'
        '[extras]\ncpu = ["torch"]\nold-gpu = ["jax"]\n'
    ),
    "pdm.lock": (
        '[metadata]\ngroups = ["default", "cpu", "old-gpu"]\n'
        '[[package]]\nname = "torch"\nversion = "2.4.0"\ngroups = ["cpu"]\n'
        '[[package]]\nname = "sympy"\nversion = "1.13"\ngroups = ["cpu"]\n'
        '[[package]]\nname = "jax"\nversion = "0.4.35"\ngroups = ["old-gpu"]\n'
    ),
    "pylock.toml": (
        'lock-version = "1.0"\nextras = ["cpu", "old-gpu"]\n'
        '[[packages]]\nname = "torch"\nversion = "2.4.0"\nmarker = "\'cpu\' in extras"\n'
        '[[packages]]\nname = "sympy"\nversion = "1.13"\nmarker = "\'cpu\' in extras"\n'
        '[[packages]]\nname = "jax"\nversion = "0.4.35"\nmarker = "\'old-gpu\' in extras"\n'
    ),
}


@pytest.mark.parametrize("name", LOCKS_WITH_EXTRAS)
def test_only_the_packages_of_the_selected_extras_are_installed(name):
    content = LOCKS_WITH_EXTRAS[name]
    assert sorted(read(name, content, extras=["cpu"]).requirements) == ["sympy==1.13", "torch==2.4.0"]
    assert read(name, content, extras=["Old_GPU"]).requirements == ("jax==0.4.35",)
    with pytest.raises(SteleError, match=r"has no extra 'gpu'. It has: cpu, old-gpu."):
        read(name, content, extras=["gpu"])
    with pytest.raises(SteleError, match="names no package"):
        read(name, content)


def test_the_extras_of_a_project_are_selected_in_both_tables():
    project = "[project]\ndependencies = ['numpy']\n[project.optional-dependencies]\ncpu = ['torch==2.4.0']\n"
    poetry = (
        '[tool.poetry.dependencies]\nnumpy = "*"\ntorch = { version = "2.4.0", optional = true }\n'
        'jax = { version = "0.4.35", optional = true }\n[tool.poetry.extras]\ncpu = ["torch"]\n'
    )
    for content in (project, poetry):
        assert read("pyproject.toml", content).requirements == ("numpy",)
        assert read("pyproject.toml", content, extras=["cpu"]).requirements == ("numpy", "torch==2.4.0")


def test_requirements_have_no_extras():
    with pytest.raises(SteleError, match=r"has no extra 'cpu'. It has none. Leave --extra out."):
        read("requirements.txt", "torch==2.4.0", extras=["cpu"])


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


@pytest.mark.parametrize(
    "code",
    [
        "R = ['jax==1']\nR += ['flax']\nsetup(install_requires=R)",
        "R = ['jax==1']\nR.extend(['flax'])\nsetup(install_requires=R)",
        "R = ['jax==1']\nif x:\n    R = ['jax==2']\nsetup(install_requires=R)",
        "R = {'a': ['jax==1']}\nR['a'] = ['jax==2']\nsetup(install_requires=[], extras_require=R)",
        "C = dict(install_requires=['jax==1'])\nsetup(**C)",
        "C = {'name': 'x'}\nC['install_requires'] = ['jax']\nsetup(**C)",
    ],
)
def test_packages_of_a_setup_py_that_statements_change_are_computed(code):
    with pytest.raises(SteleError, match="the value is computed, and Stele does not execute it"):
        read("setup.py", code)


def test_a_setup_py_with_a_table_of_arguments_is_read():
    code = "C = {'name': 'x', 'install_requires': ['jax==1']}\nsetup(**C)"
    assert read("setup.py", code).requirements == ("jax==1",)
    assert read("setup.py", "setup(install_requires=['jax'], **other())").requirements == ("jax",)
