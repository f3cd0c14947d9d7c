"""What a lock file contains, and what it contradicts."""

import platform
import time

import pytest

from stele.environments.lockfiles import Locked, read
from stele.errors import SteleError
from tests.support.lock_files import PEP_751, pep_751_package, read_sample


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


def test_many_ways_to_need_a_package_take_little_time():
    layers, width = 30, 4
    edges = [
        ", ".join(f"{{ name = 'p{layer + 1}-{to}', marker = \"os_name == '{layer}{to}'\" }}" for to in range(width))
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
        PEP_751
        + 'extras = ["cpu", "old-gpu"]\n'
        + pep_751_package("torch", "2.4.0", "'cpu' in extras")
        + pep_751_package("sympy", "1.13", "'cpu' in extras")
        + pep_751_package("jax", "0.4.35", "'old-gpu' in extras")
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
