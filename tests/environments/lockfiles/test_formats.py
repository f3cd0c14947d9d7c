"""Lock files: every format, what is refused, and hostile content."""

import contextlib
import re
import time

import pytest

from stele.environments import lockfiles
from stele.environments.lockfiles import read
from stele.errors import SteleError
from tests.support.lock_files import PEP_751

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
@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith((".toml", ".lock")) and "Pip" not in name])
def test_toml_with_values_of_a_wrong_type_is_harmless(name, value):
    for key in TOML_KEYS:
        read_or_refuse(name, f"{key} = {value}")
    head, table = (PEP_751, "packages") if name == "pylock.toml" else ("", "package")
    for key in PACKAGE_KEYS:
        rest = "".join(f'{other} = "x"\n' for other in ("name", "version") if other != key)
        read_or_refuse(name, f"{head}[[{table}]]\n{rest}{key} = {value}")
    for key in ("python", "x"):
        read_or_refuse(name, f"[tool.poetry.dependencies]\n{key} = {value}")


@pytest.mark.parametrize("value", ["3", "true", '"x"', "[3]", "[[3]]", "[{}]", "{}", '{"x": 3}', "null", "1e999"])
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
