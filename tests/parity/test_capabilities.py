"""A framework's numbers are compared with the expected ones; a missing capability is an answer as well."""

import pytest

from stele.measuring.settings import Settings
from stele.parity import capabilities
from stele.parity.capabilities import EXPECTED, CapabilityStatus
from stele_worker import capabilities as worker_capabilities
from tests.support.scripted_environments import scripted_environment

SETTINGS = Settings(device="cpu", threads=1)


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where logs are written


def answer(name="second_derivative", **script):
    return capabilities.answer(scripted_environment(script), name, SETTINGS)


def test_the_expected_number_is_a_yes():
    assert answer(numbers=[12.0 + 1e-6]) == CapabilityStatus("yes")


@pytest.mark.parametrize("numbers", [[6.0], [], [None], [12.0, 12.0]])
def test_a_different_number_is_wrong(numbers):
    assert answer(numbers=numbers).status == "wrong"


def test_a_framework_that_compiles_for_each_batch_size_reports_the_count():
    assert answer("dynamic_batch", numbers=[3.0]) == CapabilityStatus("no", "compiled 3 times for three batch sizes")


def test_a_missing_capability_is_a_no_with_its_reason():
    assert answer(capability="not_implemented") == CapabilityStatus("no", "no tapes here")


@pytest.mark.parametrize("action", ["raise_error", "segfault"])
def test_an_error_and_a_crash_are_failures(action):
    assert answer(capability=action).status == "failed"


def test_host_and_worker_have_the_same_capabilities():
    assert list(EXPECTED) == list(worker_capabilities.NAMES)
    assert all(f"{name}(" in worker_capabilities.__doc__ for name in EXPECTED)


def test_an_unsupported_framework_and_an_unknown_capability_are_errors():
    with pytest.raises(NotImplementedError, match="no capability is implemented for numpy yet"):
        worker_capabilities.show("numpy", "hooks")
    with pytest.raises(ValueError, match="unknown capability 'flight'"):
        worker_capabilities.show("numpy", "flight")
