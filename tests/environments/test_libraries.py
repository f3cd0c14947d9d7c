"""The libraries of the system that an environment needs."""

from stele.environments import Environment, libraries


def test_a_missing_program_comes_with_the_way_to_install_it():
    environment = Environment(
        name="knet", label="", framework="knet", programs={"no-such-program": "See julialang.org"}
    )
    assert libraries.missing_message(environment) == "no-such-program is not on PATH. See julialang.org"


def test_a_missing_library_comes_with_its_package():
    environment = Environment(name="x", label="", framework="x", libraries={"libnone.so.1": {"package": "libnone1"}})
    assert "libnone.so.1 is not installed. Install the Debian package libnone1" in libraries.missing_message(
        environment
    )
