"""The tables of capabilities and of defaults."""

from stele.parity.capabilities import EXPECTED, CapabilityStatus
from stele.parity.defaults import DefaultChange
from stele.report import parity as parity_page
from tests.support.scripted_environments import scripted_environment


def test_the_table_has_a_column_for_each_capability_and_the_reasons_below():
    environment = scripted_environment({})
    answers = {
        environment: {**dict.fromkeys(EXPECTED, CapabilityStatus("yes")), "hooks": CapabilityStatus("no", "no | hooks")}
    }
    header, _, line, *rest = parity_page.capability_table(answers).splitlines()[2:]
    assert header.count("|") == line.count("|") == 2 + len(EXPECTED)
    assert rest[-1] == "- Scripted, forward pre- and post-hook: no \\| hooks"


def test_each_change_is_a_line_and_no_change_is_a_message():
    assert parity_page.change_lines("2.3", "3.15", [DefaultChange("reset after", False, True)]) == [
        "             2.3       3.15",
        "reset after  False  →  True",
    ]
    assert parity_page.change_lines("a", "b", []) == ["a and b have the same recorded defaults."]
