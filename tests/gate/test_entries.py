"""The lines of a record, and what a gate writes with ``--json``."""

import json

import pytest

from stele import schema
from stele.gate import entries
from stele.gate.entries import ENTRIES, OtherEntry, Together
from tests.support import gate_records
from tests.support.gates import entries as written
from tests.support.gates import slower


def test_each_line_that_a_gate_writes_has_a_type_of_its_own(gate):
    gate("--phase=infer", new={"seconds": slower(1.05)}, metric="step,host-memory")
    path, launches = written()
    last = json.loads(path.read_text().splitlines()[-1])
    assert {entry["key"][0] for entry in [*launches, last]} == {"long", "short", "verdicts"}
    for entry in [*launches, last]:
        kind = ENTRIES[entry["key"][0]]
        assert not set(entry) - set(kind.__annotations__) - set(OtherEntry.__annotations__)


def test_a_run_in_a_line_is_a_run():
    draw_from = gate_records.entries(gate_records.header(), passes=1, factor=1.0)
    launch = next(entry for entry in draw_from if entry["key"][0] == "long")
    entry = schema.convert(launch, ENTRIES["long"])
    assert {run.task for run in entry["runs"].values()} == {"cnn"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"took": "long"}, "Expected `float`, got `str` - at `$.took`"),
        ({"findings": [{"rung": 12, "status": "agrees"}]}, "there is no rung 12"),
    ],
)
def test_a_line_whose_value_is_wrong_is_refused_with_its_place(changes, message):
    entry = {"key": ["parity", "gru", "old"], "took": 1.0, "findings": [], "failure": None, **changes}
    with pytest.raises(ValueError) as error:
        schema.convert(entry, entries.ParityEntry)
    assert message in str(error.value)


@pytest.mark.parametrize(("code", "end"), [(0, ""), (1, " This is not a pass."), (3, " This is not a pass.")])
def test_several_gates_that_do_not_all_pass_are_no_pass(code, end):
    assert Together(code, ()).sentence == f"All changes together: exit code {code}.{end}"
