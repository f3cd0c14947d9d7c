"""``--input``, as text."""

import pytest

from stele.errors import SteleError
from stele.subjects.model import inputs
from stele.subjects.model.inputs import Input


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8x3x64x64", (Input(None, "float", (8, 3, 64, 64)),)),
        ("int:4x128:30522", (Input(None, "int", (4, 128), 30522),)),
        ("x=float:2x3", (Input("x", "float", (2, 3)),)),
        (
            "input_ids=int:4x128:30522,attention_mask=mask:4x128",
            (Input("input_ids", "int", (4, 128), 30522), Input("attention_mask", "mask", (4, 128))),
        ),
    ],
)
def test_inputs_are_read(text, expected):
    assert inputs.parse(text) == expected


@pytest.mark.parametrize("text", ["8x3x64x64", "int:4x128:30522", "ids=int:4x128:9,m=mask:4x8"])
def test_inputs_are_shown_as_they_are_typed(text):
    assert ",".join(map(str, inputs.parse(text))) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not an input such as 8x3x64x64"),
        ("8,3", "must be equal"),
        ("8x", "'8x' is not an input"),
        ("long:4x128:10", "unknown kind 'long'. The kinds are float, int, mask"),
        ("int:4x128", "needs an upper bound, such as int:4x128:30522"),
        ("mask:4x128:2", "an int input, and no other"),
        ("int:4:1", "at least 2"),
        ("0x3", "at least 1"),
        ("99999x99999x9", "less than 2**31"),
        ("a=2x3,a=2x3", "a name of its own"),
        ("a=2x3,2x3", "a name of its own"),
        ("a=2x3,b=4x3", "must be equal"),
        ("-1x3", "is not an input"),
    ],
)
def test_an_input_without_meaning_is_quoted(text, message):
    with pytest.raises(SteleError) as error:
        inputs.parse(text)
    assert message in str(error.value)
