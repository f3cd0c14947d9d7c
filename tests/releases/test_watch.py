"""Newer releases of pinned packages, and what got worse since which of them."""

import pytest

from stele.errors import SteleError
from stele.releases import watch
from stele.releases.index import Release
from stele.releases.watch import Judged, Line


def test_releases_after_the_pinned_one_are_candidates_with_the_other_pins():
    releases = [Release("jax", version, "2024-01-01") for version in ("0.10.0", "0.9.0", "0.10.1", "0.8.9")]
    candidates = watch.newer({"jax": "0.9.0", "flax": "0.12.0"}, "jax", releases, 8)
    assert [each.requirements for each in candidates] == ["jax==0.10.0 flax==0.12.0", "jax==0.10.1 flax==0.12.0"]
    assert [each.name for each in watch.newer({"jax": "0.9.0"}, "jax", releases, 1)] == ["jax-0.10.1"]
    with pytest.raises(SteleError, match=r"jax has no release 99. The newest is 0.10.1."):
        watch.newer({"jax": "99"}, "jax", releases, 1)


@pytest.mark.parametrize("text", ["jax", "jax>=0.9", "jax==0.9.*", "jax==0.9; python_version<'3'", "./jax.whl", "=="])
def test_a_pin_has_a_version(text):
    with pytest.raises(SteleError, match="is no pinned package"):
        watch.parse_pins([text])


WORSE = Judged("record", (Line("test_a outcome", "failed"),))
FAILED_NOW = Judged("record", WORSE.worse, failure="no network")  # it was judged in an earlier night
GOOD, UNKNOWN, FAILED = Judged("record"), Judged("record", (), (watch.ALL,)), Judged(None, failure="no wheel")


@pytest.mark.parametrize(
    ("judged", "since"),
    [
        ([GOOD, WORSE, WORSE], "1"),
        ([WORSE, GOOD, WORSE], "2"),
        ([WORSE, UNKNOWN, WORSE], "0"),
        ([WORSE, FAILED], "0"),
        ([GOOD, FAILED_NOW], "1"),
        ([WORSE, UNKNOWN], "0"),
        ([WORSE, GOOD], None),
        ([WORSE, Judged("record", (), ("test_a outcome",))], "0"),
        ([WORSE, Judged("record", (), ("test_b step",))], None),
    ],
)
def test_a_line_belongs_to_the_first_release_in_which_it_is_worse(judged, since):
    lines = watch.worse_lines([(str(number), each) for number, each in enumerate(judged)], "machine")
    assert [each.release for each in lines] == ([] if since is None else [since])


def test_a_state_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "state.json"
    path.write_text("{")
    with pytest.raises(SteleError, match="Delete it"):
        watch.State(path)
    path.unlink()
    state = watch.State(path)
    state.nights.judged["jax-0.10.1"] = WORSE
    state.save()
    assert watch.State(path).nights == state.nights
