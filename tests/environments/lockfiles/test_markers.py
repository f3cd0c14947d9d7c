"""Markers of packages."""

import pytest

from stele.environments.lockfiles import read
from stele.errors import SteleError
from tests.support.lock_files import PEP_751, pep_751_package


@pytest.mark.parametrize(
    "marker",
    ["extra == ", "extra == 'x' and (", "__import__('os').abort() or extra", "extra.x == 1", "-" * 5000],
)
def test_a_broken_marker_is_refused(marker):
    with pytest.raises(SteleError, match=r"cannot be understood: .packages\[0\]\.marker: Expected"):
        read("pylock.toml", PEP_751 + pep_751_package("torch", "2", f"extra {marker}"))
