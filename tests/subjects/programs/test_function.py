"""How a function is named."""

import pytest

from stele.errors import SteleError
from stele.subjects.programs import function


@pytest.mark.parametrize("spec", ["lib:f", "package.module:Class.method", "lib.py:f"])
def test_a_function_is_of_a_module_or_of_a_file(tmp_path, spec):
    (tmp_path / "lib.py").touch()
    assert function.parse(spec, tmp_path, None).label == spec


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("f", "names no function"),
        ("lib.py", "names no function"),
        (":f", "names no function"),
        ("li.py:f", "there is no file .*li.py. Did you mean lib.py?"),
        ("a-b:f", "'a-b' is neither a module nor a file"),
    ],
)
def test_another_spec_is_refused_with_the_forms(tmp_path, spec, message):
    (tmp_path / "lib.py").touch()
    with pytest.raises(SteleError, match=message):
        function.parse(spec, tmp_path, None)
