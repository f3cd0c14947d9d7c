"""Lock files keep the hashes of files that the Python of an environment can install, and no others."""

import pytest

from stele.environments.hashes import is_installable, keep_installable

WHEELS = {
    "numpy-2.1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl": True,
    "numpy-2.1.0-cp311-cp311-macosx_14_0_arm64.whl": True,
    "numpy-2.1.0-cp310-cp310-manylinux2014_x86_64.whl": False,
    "numpy-2.1.0-cp311-cp311-win_amd64.whl": False,
    "numpy-2.1.0-pp310-pypy310_pp73-manylinux2014_x86_64.whl": False,
    "six-1.16.0-py2.py3-none-any.whl": True,
    "enum34-1.1.10-py2-none-any.whl": False,
    "grpcio-1.0-cp38-abi3-manylinux2014_aarch64.whl": True,
    "grpcio-1.0-cp312-abi3-manylinux2014_aarch64.whl": False,
    "tool-1.0-py38-none-any.whl": True,
    "strange.whl": True,
}


@pytest.mark.parametrize(("name", "kept"), WHEELS.items())
def test_a_wheel_is_kept_if_the_python_can_install_it(name, kept):
    assert is_installable(name, {11}) == kept


def pylock(*files, sdist="", name="numpy"):
    wheels = ", ".join(
        f'{{ {key} = "{where}", hashes = {{ sha256 = "{hash}" }} }}' for key, where, hash in files
    )
    source = f'sdist = {{ url = "x", hashes = {{ sha256 = "{sdist}" }} }}\n' if sdist else ""
    return f'[[packages]]\nname = "{name}"\n{source}wheels = [{wheels}]\n'


def test_the_hashes_of_other_files_are_left_out_and_those_of_sources_stay():
    head = "numpy==2.1.0 ; sys_platform == 'linux' \\\n"
    text = head + "    --hash=sha256:aa \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
    files = [
        ("url", "https://host/numpy-2.1.0-cp310-cp310-win32.whl", "aa"),
        ("path", "wheels/numpy-2.1.0-cp311-cp311-linux_x86_64.whl", "bb"),
    ]
    expected = head + "    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
    assert keep_installable(text, pylock(*files, sdist="cc"), "==3.11.*") == expected


def test_a_source_is_left_out_beside_a_wheel_for_all_platforms():
    text = "six==1.16.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:cc\n"
    wheel = ("url", "https://host/six-1.16.0-py2.py3-none-any.whl", "aa")
    expected = "six==1.16.0 \\\n    --hash=sha256:aa\n"
    assert keep_installable(text, pylock(wheel, sdist="cc", name="six"), "==3.11.*") == expected


def test_a_package_of_which_nothing_can_be_installed_keeps_all_hashes():
    text = "numpy==2.1.0 \\\n    --hash=sha256:aa\ntoy @ git+https://host/toy@0123\n"
    only = pylock(("url", "https://host/numpy-2.1.0-cp310-cp310-win32.whl", "aa"))
    assert keep_installable(text, only, "==3.11.*") == text
