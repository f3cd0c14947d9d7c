"""Packages of conda under the names and versions of PyPI."""

import pytest

from stele.environments.lockfiles import read
from stele.errors import SteleError


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


@pytest.mark.parametrize("line", ["a|b", "numpy>=1|<2", "numpy[version=2]", "", "pytorch=2.5.1foo", "a b c d"])
def test_a_conda_line_that_is_not_understood_is_refused(line):
    with pytest.raises(SteleError, match=r"^environment.yml: '"):
        read("environment.yml", f"dependencies: ['{line}', tqdm]")
