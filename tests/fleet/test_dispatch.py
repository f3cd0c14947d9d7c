"""Which work is given to which node, and what is told of work that ends without an answer."""

import itertools
import time

import pytest

from stele.errors import SteleError
from stele.fleet import dispatch
from stele.fleet.dispatch import Dispatch
from stele.fleet.work import (
    CUDA,
    DONE,
    FAILED,
    LACKS,
    LOST,
    UNFIT,
    Ending,
    Needs,
    Reply,
    Started,
    Work,
)
from tests.support.virtual_fleet import Virtual, losing, nodes, run, works


def test_every_work_is_done_once():
    outcomes, told = run(Virtual(nodes(3)), works(10))
    assert sorted(outcome.result for outcome in outcomes.values()) == sorted(work.key for work in works(10))
    assert told == []


def test_work_goes_only_to_its_type():
    fleet = [
        *nodes(2, types=("epyc",)),
        *(one._replace(id=f"x{one.id}", name=f"x{one.name}", types=("xeon",)) for one in nodes(2)),
    ]
    engine = Virtual(fleet)
    run(engine, works(8, Needs(type="xeon")))
    assert {name for places in engine.placed.values() for name in places} <= {"xnode0", "xnode1"}


def test_a_gpu_is_not_on_a_node_without_one():
    outcomes, _ = run(Virtual(nodes(2)), works(1, Needs(CUDA)))
    assert outcomes["cell-0"].failure == "no node has the type GPU. The types of the nodes: epyc."


def test_a_type_that_no_node_has_is_told_at_once_and_the_others_are_measured():
    wanted = [*works(2), Work("gpu", "gpu cell", {}, Needs(CUDA, "H100"))]
    outcomes, _ = run(Virtual(nodes(2)), wanted)
    assert outcomes["gpu"].failure == "no node has the type H100. The types of the nodes: epyc."
    assert [outcomes[f"cell-{number}"].failure for number in range(2)] == [None, None]


def test_an_unfit_node_gets_no_more_work():
    def do(node, work):
        bad = node.name == "node0"
        return Reply(UNFIT, node, message="its disk is full") if bad else Reply(DONE, node, work.key)

    engine = Virtual(nodes(3), do)
    outcomes, told = run(engine, works(20))
    assert told == ["node0 gets no more work: its disk is full"]
    assert all(outcome.failure is None for outcome in outcomes.values())
    assert all(places[-1] != "node0" for places in engine.placed.values())


def test_no_fit_node_is_told_for_each_work():
    outcomes, _ = run(Virtual(nodes(2), lambda node, work: Reply(UNFIT, node, message="no")), works(3))
    assert {outcome.failure for outcome in outcomes.values()} == {
        "no node with a processor is left that can measure it."
    }


def test_work_whose_last_node_has_left_ends_after_some_minutes(monkeypatch):
    monkeypatch.setattr(dispatch.time, "monotonic", itertools.count(0, 60).__next__)
    [left], [other] = nodes(1, types=("H100",)), nodes(1, types=("H200",))
    fleet = [left, other._replace(id="other")]

    def do(node, work):
        if node is left:
            fleet.remove(left)
        return Reply(DONE, node, work.key)

    cells = [
        work._replace(needs=Needs("cpu", name)) for work, name in zip(works(3), ("H100", "H100", "H200"), strict=True)
    ]
    outcomes, told = run(Virtual(fleet, do), cells)
    failures = [outcomes[work.key].failure for work in cells]
    assert failures == [None, "the last node with a H100 has left.", None]
    assert told == ["no node of the type H100 is left. Its work waits 5 minutes for another node."]


def test_work_ends_if_every_node_has_left_or_only_unfit_ones_stay(monkeypatch):
    for stays in (False, True):
        monkeypatch.setattr(dispatch.time, "monotonic", itertools.count(0, 60).__next__)
        [good], [unfit] = nodes(1), nodes(1)
        fleet = [good, unfit._replace(id="unfit")] if stays else [good]

        def do(node, work, fleet=fleet, good=good):
            if node is good:
                fleet.remove(good)
                return Reply(DONE, node, work.key)
            return Reply(UNFIT, node, message="its disk is full")

        outcomes, _ = run(Virtual(fleet, do), works(3))
        failures = [outcomes[f"cell-{number}"].failure for number in range(3)]
        assert failures[0] is None and all(failures[1:])


def test_work_that_a_node_lacks_goes_to_another_and_the_node_keeps_other_work():
    def do(node, work):
        lacks = node.name == "node0" and work.key == "cell-0"
        return Reply(LACKS, node, message="no network") if lacks else Reply(DONE, node, work.key)

    engine = Virtual(nodes(2), do)
    outcomes, told = run(engine, works(6))
    assert engine.placed["cell-0"][-1] == "node1"
    assert told == ["cell 0: not on node0: no network"]
    assert all(outcome.failure is None for outcome in outcomes.values())


def test_lost_work_is_named_and_the_others_continue():
    outcomes, _ = run(Virtual(nodes(4), losing(0.2)), works(50))
    lost = [outcome for outcome in outcomes.values() if outcome.failure]
    assert 0 < len(lost) < 30
    assert all(outcome.failure.startswith("two nodes were lost while they measured it") for outcome in lost)


NOT_BEGUN = "it had not begun when the fleet lost its nodes. The same command measures it: see their logs"
ENDED_TWO = "two nodes were lost while they measured it, so it is not tried again. Perhaps it ends them: see their logs"


class Deaf(Virtual):
    """Loses its nodes before they start the works with these numbers."""

    def __init__(self, fleet, numbers):
        super().__init__(fleet, lambda node, work: Reply(LOST))
        self.keys = {f"cell-{number}" for number in numbers}

    def started(self):
        return [event for event in super().started() if event.key not in self.keys]


@pytest.mark.parametrize("unbegun", [range(5), range(1, 5), ()], ids=["none", "one begun", "all begun"])
def test_lost_work_that_had_not_begun_is_not_said_to_end_nodes(unbegun):
    outcomes, _ = run(Deaf(nodes(3), unbegun), works(5))
    failures = [outcomes[f"cell-{number}"].failure for number in range(5)]
    assert failures == [NOT_BEGUN if number in unbegun else ENDED_TWO for number in range(5)]


def test_a_fleet_of_one_node_does_not_lose_two():
    outcomes, _ = run(Virtual(nodes(1), losing(1)), works(1))
    assert outcomes["cell-0"].failure == (
        "its node was lost while it measured it, so it is not tried again. Perhaps it ends its node: see their logs"
    )


def test_what_an_unfit_node_began_has_not_begun_elsewhere(monkeypatch):
    engine = Virtual(nodes(2), lambda node, work: Reply(UNFIT if node.name == "node0" else LOST, node))
    first = iter([[Started("cell-0", "node0", 0.0)]])
    monkeypatch.setattr(engine, "started", lambda: next(first, []))
    outcomes, _ = run(engine, works(1))
    assert outcomes["cell-0"].failure == NOT_BEGUN


def test_what_has_started_is_told_once_also_if_its_work_was_lost():
    told = []
    dispatch.run(Dispatch(Virtual(nodes(2), losing(1)), print), works(2), ended=lambda outcome: None, idle=told.extend)
    assert [(event.key, event.node) for event in told] == [
        ("cell-0", "node0"),
        ("cell-1", "node1"),
        ("cell-0", "node1"),
        ("cell-1", "node0"),
    ]


def test_a_failure_of_the_framework_is_the_outcome():
    outcomes, _ = run(Virtual(nodes(1), lambda node, work: Reply(FAILED, node, message="crashed")), works(1))
    assert outcomes["cell-0"] == Ending(works(1)[0], failure="crashed")


@pytest.mark.parametrize("count", [1, 2, 10, 50, 100, 200])
def test_throughput_is_linear_in_the_nodes(count):
    """1,000 cells of 10 s, on a virtual clock to which the time of this process is added."""
    engine = Virtual(nodes(count), seconds=10.0)
    began = time.process_time()
    run(engine, works(1000))
    spent = time.process_time() - began
    assert engine.now == pytest.approx(10.0 * 1000 / count)
    assert spent < 0.02 * 1000 * 10.0 / count, "scheduling takes more than 2 % of the measured time"


def test_two_works_with_one_key_are_refused():
    with pytest.raises(SteleError, match="Named twice: cell-0"):
        dispatch.one_of_each([*works(2), *works(1)])


def test_places_count_only_nodes_that_fit():
    fleet = [
        *nodes(3, places=2),
        *(one._replace(id=f"g{one.id}", gpus=4) for one in nodes(1, types=("H100",), places=8)),
    ]
    assert dispatch.places(fleet, works(1, Needs(type="epyc"))) == 6
    assert dispatch.places(fleet, works(1, Needs(CUDA))) == 4
    assert dispatch.places(fleet, works(1, Needs(type="epyc")), {"id0"}) == 4
