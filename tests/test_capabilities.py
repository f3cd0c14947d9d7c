"""What a framework answers is held against what has to come out; that it lacks something is an answer too."""

import pytest

from fakes import scripted_environment
from stele.measuring.settings import Settings
from stele.parity import capabilities
from stele.parity.capabilities import EXPECTED, Answer
from stele.report import parity as parity_page
from stele_worker import capabilities as asked

SETTINGS = Settings(device="cpu", threads=1)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where logs are written


def answer(name="second_derivative", **script):
    return capabilities.answer(scripted_environment(script), name, SETTINGS)


def test_the_number_that_has_to_come_out_is_a_yes():
    assert answer(numbers=[12.0 + 1e-6]) == Answer("yes")


@pytest.mark.parametrize("numbers", [[6.0], [], [None], [12.0, 12.0]])
def test_another_number_is_wrong(numbers):
    assert answer(numbers=numbers).status == "wrong"


def test_a_framework_that_compiles_for_each_batch_says_how_often():
    assert answer("dynamic_batch", numbers=[3.0]) == Answer("no", "compiled 3 times for three batch sizes")


def test_what_a_framework_lacks_is_a_no_with_its_reason():
    assert answer(capability="lack") == Answer("no", "no tapes here")


@pytest.mark.parametrize("deed", ["complain", "segfault"])
def test_an_error_and_a_crash_are_failures(deed):
    assert answer(capability=deed).status == "failed"


def test_the_table_has_a_column_a_capability_and_the_reasons_below():
    row = scripted_environment({})
    found = {row: {**dict.fromkeys(EXPECTED, Answer("yes")), "hooks": Answer("no", "no | hooks")}}
    header, _, line, *rest = parity_page.capabilities(found).splitlines()[2:]
    assert header.count("|") == line.count("|") == 2 + len(EXPECTED)
    assert rest[-1] == "- Scripted, forward pre- and post-hook: no \\| hooks"


def test_both_sides_ask_the_same():
    assert list(EXPECTED) == list(asked.NAMES)
    assert all(f"{name}(" in asked.__doc__ for name in EXPECTED)


def test_a_framework_that_nobody_asked_and_an_unknown_capability_say_so():
    with pytest.raises(NotImplementedError, match="nobody has asked numpy yet"):
        asked.show("numpy", "hooks")
    with pytest.raises(ValueError, match="unknown capability 'flight'"):
        asked.show("numpy", "flight")
