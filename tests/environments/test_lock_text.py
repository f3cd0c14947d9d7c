"""The text of a lock file, and the hashes that it allows."""

import pytest

from stele.environments import lock_text
from stele.errors import SteleError

A, B = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
LOCK = f"""# a comment
numpy==2.0 \\
    --hash={A} \\
    --hash={B}
typing-extensions==4.0 ; python_version < "3.11" \\
    --hash={A}
"""


def test_a_requirement_is_read_with_its_hashes():
    assert list(lock_text.entries(LOCK)) == [
        ["# a comment"],
        ["numpy==2.0", f"    --hash={A}", f"    --hash={B}"],
        ['typing-extensions==4.0 ; python_version < "3.11"', f"    --hash={A}"],
    ]


def test_the_hashes_are_left_out():
    expected = '# a comment\nnumpy==2.0\ntyping-extensions==4.0 ; python_version < "3.11"\n'
    assert lock_text.without_hashes(LOCK) == expected


def test_only_the_hashes_that_are_allowed_for_a_package_stay():
    assert lock_text.keep_allowed(LOCK, {"numpy": [B]}) == LOCK.replace(f"    --hash={A} \\\n", "", 1)
    assert lock_text.keep_allowed(LOCK, {}) == lock_text.keep_allowed(LOCK, {"scipy": [B]}) == LOCK


def test_a_package_of_which_no_hash_is_allowed_is_an_error():
    with pytest.raises(SteleError, match="typing-extensions==4.0.*: the package index has other files"):
        lock_text.keep_allowed(LOCK, {"typing-extensions": [B]})
