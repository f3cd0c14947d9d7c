"""Whose times are those of Python functions."""

from stele.explain import launches
from stele_worker import profiles as worker_profiles
from stele_worker import sampling


def busy():
    total = 0
    for number in range(300_000):
        total += number


def test_py_spy_shows_the_function_that_takes_the_time(monkeypatch):
    monkeypatch.setattr(sampling, "SECONDS", 1.0)
    found = worker_profiles.profile_functions(busy, launches.find_sampler())
    seconds, calls = found["busy (test_launches.py)"]
    assert seconds == max(numbers[0] for numbers in found.values())
    assert calls == 0


def test_without_py_spy_the_functions_of_python_are_shown(tmp_path, capfd):
    program = tmp_path / "py-spy"
    program.write_text("#!/bin/sh\necho 'Error: Operation not permitted'\n")
    program.chmod(0o755)
    found = worker_profiles.profile_functions(busy, str(program))
    assert "py-spy cannot be used: Error: Operation not permitted" in capfd.readouterr().out
    assert found["test_launches.py:busy"][1] == 1
