"""A fleet without Ray: what is given to which node, what is kept, and what is said."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

import stele
import stele_worker
from stele import __main__ as entry_point
from stele.commands import gate_options
from stele.errors import SteleError
from stele.fleet import campaign, cluster, dispatch, joining, node, slots, slurm, status, stepwise
from stele.fleet.dispatch import Dispatch
from stele.fleet.work import (
    CUDA,
    DONE,
    FAILED,
    LACKS,
    LOST,
    UNFIT,
    Answer,
    Needs,
    NodeLacks,
    NodeUnfit,
    Outcome,
    Started,
    Work,
)
from stele.measuring import content, lock
from stele.measuring.settings import Settings
from virtual import Virtual, losing, nodes


def works(count, needs=Needs()):  # noqa: B008
    return [Work(f"cell-{number}", f"cell {number}", {}, needs) for number in range(count)]


def run(engine, wanted):
    """Return the outcomes by key, and what was told."""
    told, outcomes = [], {}

    def ended(outcome):
        assert outcome.work.key not in outcomes, "a work ended twice"
        outcomes[outcome.work.key] = outcome

    dispatch.run(Dispatch(engine, told.append), wanted, ended=ended, idle=lambda events: None)
    return outcomes, told


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
    assert outcomes["cell-0"].failure == "no node has a GPU. The types of the nodes: epyc."


def test_a_type_that_no_node_has_is_told_at_once_and_the_others_are_measured():
    wanted = [*works(2), Work("gpu", "gpu cell", {}, Needs(CUDA, "H100"))]
    outcomes, _ = run(Virtual(nodes(2)), wanted)
    assert outcomes["gpu"].failure == "no node has a H100. The types of the nodes: epyc."
    assert [outcomes[f"cell-{number}"].failure for number in range(2)] == [None, None]


def test_an_unfit_node_gets_no_more_work():
    def do(node, work):
        bad = node.name == "node0"
        return Answer(UNFIT, node, message="its disk is full") if bad else Answer(DONE, node, work.key)

    engine = Virtual(nodes(3), do)
    outcomes, told = run(engine, works(20))
    assert told == ["node0 gets no more work: its disk is full"]
    assert all(outcome.failure is None for outcome in outcomes.values())
    assert all(places[-1] != "node0" for places in engine.placed.values())


def test_no_fit_node_is_told_for_each_work():
    outcomes, _ = run(Virtual(nodes(2), lambda node, work: Answer(UNFIT, node, message="no")), works(3))
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
        return Answer(DONE, node, work.key)

    cells = [
        work._replace(needs=Needs("cpu", name))
        for work, name in zip(works(3), ("H100", "H100", "H200"), strict=True)
    ]
    outcomes, told = run(Virtual(fleet, do), cells)
    failures = [outcomes[work.key].failure for work in cells]
    assert failures == [None, "the last node with a H100 has left.", None]
    assert told == ["no node has a H100 now. Its work waits 5 minutes for another node."]


def test_work_ends_if_every_node_has_left_or_only_unfit_ones_stay(monkeypatch):
    for stays in (False, True):
        monkeypatch.setattr(dispatch.time, "monotonic", itertools.count(0, 60).__next__)
        [good], [unfit] = nodes(1), nodes(1)
        fleet = [good, unfit._replace(id="unfit")] if stays else [good]

        def do(node, work, fleet=fleet, good=good):
            if node is good:
                fleet.remove(good)
                return Answer(DONE, node, work.key)
            return Answer(UNFIT, node, message="its disk is full")

        outcomes, _ = run(Virtual(fleet, do), works(3))
        failures = [outcomes[f"cell-{number}"].failure for number in range(3)]
        assert failures[0] is None and all(failures[1:])


def test_work_that_a_node_lacks_goes_to_another_and_the_node_keeps_other_work():
    def do(node, work):
        lacks = node.name == "node0" and work.key == "cell-0"
        return Answer(LACKS, node, message="no network") if lacks else Answer(DONE, node, work.key)

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
        super().__init__(fleet, lambda node, work: Answer(LOST))
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
    engine = Virtual(nodes(2), lambda node, work: Answer(UNFIT if node.name == "node0" else LOST, node))
    first = iter([[Started("cell-0", "node0", 0.0)]])
    monkeypatch.setattr(engine, "started", lambda: next(first, []))
    outcomes, _ = run(engine, works(1))
    assert outcomes["cell-0"].failure == NOT_BEGUN


def test_what_has_started_is_told_once_also_if_its_work_was_lost():
    told = []
    dispatch.run(
        Dispatch(Virtual(nodes(2), losing(1)), print), works(2), ended=lambda outcome: None, idle=told.extend
    )
    assert [(event.key, event.node) for event in told] == [
        ("cell-0", "node0"),
        ("cell-1", "node1"),
        ("cell-0", "node1"),
        ("cell-1", "node0"),
    ]


def test_a_failure_of_the_framework_is_the_outcome():
    outcomes, _ = run(Virtual(nodes(1), lambda node, work: Answer(FAILED, node, message="crashed")), works(1))
    assert outcomes["cell-0"] == Outcome(works(1)[0], failure="crashed")


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


# ---- campaign


def test_an_interrupted_command_continues_and_an_ended_one_starts_again(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    place, continued = campaign.open_campaign({"cells": 2})
    assert not continued
    place.save(works(2)[0], run.to_dict())
    place.lock.release()
    again, continued = campaign.open_campaign({"cells": 2})
    assert continued
    assert again.missing(works(2)) == works(2)[1:]
    assert campaign.open_campaign({"cells": 3})[1] is False
    again.end()
    again.lock.release()
    assert campaign.open_campaign({"cells": 2})[1] is False


def test_two_equal_commands_do_not_measure_the_same_at_the_same_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = "from stele.fleet import campaign; held = campaign.open_campaign({}); print('held', flush=True); input()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        for again in (False, True):
            with pytest.raises(SteleError, match="Another command measures the same already"):
                campaign.open_campaign({}, again=again)
        other.kill()
    assert campaign.open_campaign({})[1] is True


def test_a_result_is_one_file_however_often_it_arrives(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    place, _ = campaign.open_campaign({})
    for _ in range(3):
        place.save(works(1)[0], run.to_dict())
    assert len(list(campaign.RUNS.glob("*.json"))) == 1


def test_what_is_no_run_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place, _ = campaign.open_campaign({})
    with pytest.raises((SteleError, ValueError, TypeError)):
        place.save(works(1)[0], {"when": 3})
    assert place.missing(works(1)) == works(1)


# ---- status


def state(**changes):
    return replace(status.begin("stele fleet run", 10), **changes)


def test_the_command_of_a_status_has_no_password():
    begun = status.begin("stele fleet gate --address ray://user:secret@host", 1)
    assert begun.command == "stele fleet gate --address ray://user:***@host"


def test_the_status_says_what_runs_where_what_waits_and_the_end(tmp_path):
    now = time.time()
    one = state(done=14, total=20, timed=4, seconds=40.0, places=2)  # an earlier command measured ten
    one.start("torch cnn train, launch 1", Started("a", "node-a", now - 4.0))
    status.write(tmp_path / "status.json", one)
    lines = status.lines(status.read(tmp_path / "status.json"), now)
    assert "14 of 20 measured, 0 failed, 1 running, 5 waiting; estimated end" in lines[0]
    assert "torch cnn train, launch 1" in lines[1] and "node-a" in lines[1]
    assert one.left(now) == pytest.approx((6 * 10.0 - 4.0) / 2, abs=0.1)


def test_the_status_names_what_failed_and_a_command_that_died(tmp_path):
    one = state(pid=2**22 + 1)
    one.end(Outcome(works(1)[0], failure="crashed"), time.time())
    lines = status.lines(one, time.time())
    assert "cell 0: crashed" in lines
    assert lines[-1].endswith("does not run any more. It continues with: stele fleet run")


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 1}', '{"schema": 1, "running": {"a": 3}}', "{"])
def test_a_damaged_status_is_one_message(text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".stele/fleet/20260101T000000-abc").mkdir(parents=True)
    (tmp_path / ".stele/fleet/20260101T000000-abc/status.json").write_text(text)
    assert entry_point.main(["fleet", "status"]) == 2
    assert capsys.readouterr().err.startswith("stele: Cannot read the status in")


def test_no_command_of_a_fleet_is_one_message(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert entry_point.main(["fleet", "status"]) == 2
    assert "Start one with: stele fleet run" in capsys.readouterr().err


# ---- nodes


def test_a_node_with_other_code_is_unfit():
    with pytest.raises(NodeUnfit, match="another version of Stele"):
        node.check("0" * 16)


@pytest.mark.parametrize("package", [stele, stele_worker])
def test_the_code_of_a_node_is_that_of_measuring_and_that_of_the_worker(package, monkeypatch):
    before, of_package = node.code(), content.of_package
    monkeypatch.setattr(content, "of_package", lambda one: {} if one is package else of_package(one))
    assert node.code() != before


def test_a_full_disk_makes_a_node_unfit(monkeypatch):
    monkeypatch.setattr(node.shutil, "disk_usage", lambda folder: Full())
    with pytest.raises(NodeUnfit, match=r"its disk has 0.2 GiB left in .* Free 1 GiB"):
        node.check(node.code())


class Full:
    free = 2**30 // 5


def test_a_node_with_other_data_lacks_the_task(monkeypatch):
    here = {"data": None, "data_origin": {"origin": "synthetic", "fingerprint": "0f"}}
    monkeypatch.setattr(node.measure, "inputs", lambda task: (here, "synthetic data"))
    assert node.inputs("gru", "0f") == here
    with pytest.raises(
        NodeLacks, match=r"its data of gru \(synthetic\) is not that of .* Set STELE_DATA on this node"
    ):
        node.inputs("gru", "1e")


def test_a_node_with_fewer_processors_than_threads_lacks_them(monkeypatch):
    monkeypatch.setattr(node.processors, "count", lambda: 2)
    node.check_threads(Settings(threads=2))
    node.check_threads(Settings(device="cuda", threads=8))
    with pytest.raises(NodeLacks, match="--threads 3 needs as many processors, and a launch has 2 here"):
        node.check_threads(Settings(threads=3))


def test_the_processors_of_a_cluster_are_not_those_of_the_command(monkeypatch):
    monkeypatch.setattr(gate_options.processors, "count", lambda: 2)
    line = ["fleet", "gate", "torch", "jax", "--task=gru", "--threads=8"]
    with pytest.raises(SteleError, match="--threads 8 leaves no processor of 2"):
        gate_options.trial_from(entry_point.parser().parse_args(line))
    there = entry_point.parser().parse_args([*line, "--address=auto"])
    assert gate_options.trial_from(there).settings.threads == 8


def test_a_node_that_cannot_read_its_data_lacks_the_task(monkeypatch):
    def fail(task):
        raise SteleError("train.npy is damaged")

    monkeypatch.setattr(node.measure, "inputs", fail)
    with pytest.raises(NodeLacks, match="it cannot read the data of gru: train.npy is damaged"):
        node.inputs("gru", "0f")


def test_works_with_one_name_have_different_folders_at_the_same_time(tmp_path):
    with node.working_in(str(tmp_path), "gate"):
        with node.working_in(str(tmp_path), "gate"):
            assert Path.cwd() == tmp_path / "gate-2"
        assert Path.cwd() == tmp_path / "gate"
    with node.working_in(str(tmp_path), "gate"):
        assert Path.cwd() == tmp_path / "gate"


def test_works_with_different_names_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    found = []
    for folder, name in ((None, "torch-gru-train"), (None, "torch-gru-infer"), (str(tmp_path), "gate")):
        with node.working_in(folder, name):
            found.append(Path.cwd())
    assert found == [
        *(tmp_path / "cache/fleet" / f"torch-gru-{phase}" for phase in ("train", "infer")),
        tmp_path / "gate",
    ]


def test_numa_nodes_are_slots(tmp_path, monkeypatch):
    for number, text in enumerate(["0-3,8", "4-7"]):
        (tmp_path / f"node{number}").mkdir()
        (tmp_path / f"node{number}/cpulist").write_text(text)
    monkeypatch.setattr(slots, "NODES", tmp_path)
    monkeypatch.setattr(slots.processors, "usable", lambda: [0, 1, 4, 5, 8])
    assert slots.slots() == [slots.Slot(0, (0, 1, 8)), slots.Slot(1, (4, 5))]


def test_two_measurements_never_have_one_slot(tmp_path, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    monkeypatch.setattr(slots, "slots", lambda: [slots.Slot(0, (0,)), slots.Slot(1, (0,))])
    monkeypatch.setattr(slots, "POLL", 0.01)
    held, most, guard = set(), [], threading.Lock()

    def measure():
        with slots.taken("a cell", "cpu", lambda text: None) as slot:
            with guard:
                assert slot.number not in held
                held.add(slot.number)
                most.append(len(held))
            time.sleep(0.02)
            with guard:
                held.remove(slot.number)

    threads = [threading.Thread(target=measure) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 6 and max(most) <= 2


def test_a_suite_waits_for_the_cells_of_a_fleet_and_cells_do_not_wait_for_each_other(tmp_path, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    with lock.opened() as cell, lock.opened() as other, lock.opened() as suite:
        assert lock.find_taken(cell, shared=True) is None
        assert lock.find_taken(other, shared=True) is None
        assert lock.find_taken(suite) is not None


# ---- a gate, one pass at a time


def test_a_gate_waits_until_its_entry_is_taken(tmp_path):
    reached = []

    def gate(emit):
        log = stepwise.Relay(tmp_path / "record.jsonl", {}, [], emit)
        log.add({("long", "cnn train", 0): {"took": 1.0}})
        reached.append("second pass")
        log.add({("long", "cnn train", 1): {"took": 1.0}})
        return {"status": "PASS"}

    steps = stepwise.Steps(gate)
    first = steps.next()
    time.sleep(0.1)
    assert reached == [] and first["entries"][0]["took"] == 1.0
    assert steps.next()["entries"][0]["key"] == ("long", "cnn train", 1)
    assert steps.next() == {"status": "PASS"}
    assert not (tmp_path / "record.jsonl").exists()


def test_an_error_of_a_gate_is_raised_by_its_step():
    def gate(emit):
        raise SteleError("no")

    with pytest.raises(SteleError, match="no"):
        stepwise.Steps(gate).next()


# ---- bad input


def test_no_ray_is_one_message(monkeypatch, capsys, tmp_path, add_environment):
    add_environment("steady", seconds=[0.5, 0.1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert entry_point.main(["fleet", "run", "--framework=steady", "--task=gru", "--scale=smoke"]) == 2
    assert capsys.readouterr().err.endswith("Ray is not installed. Run: pip install 'pytest-stele[fleet]'\n")


def test_jobs_of_an_array_are_done_as_processes_of_this_machine(tmp_path):
    """The local executor of submitit."""
    pytest.importorskip("submitit", reason="needs submitit: pip install submitit")

    def measure(request):
        if "fails" in request:
            raise SteleError("the framework fails")
        return {"pid": os.getpid()} if request else os.abort()

    requests = [{"number": 1}, {"number": 2}, {"fails": True}, {}]
    cells = [Work(str(number), f"cell {number}", request) for number, request in enumerate(requests)]
    with slurm.submitted(tmp_path, measure, None, cluster="local") as array:
        outcomes, _ = run(array, cells)
    pids = {outcomes[key].result["pid"] for key in ("0", "1")}
    assert len(pids) == 2 and os.getpid() not in pids
    assert outcomes["2"].failure == "the framework fails"
    assert "its job ended without a result" in outcomes["3"].failure


def test_jobs_that_a_killed_command_left_are_cancelled(tmp_path, monkeypatch):
    for name in ("7_0_submitted.pkl", "7_1_submitted.pkl", "7_0_0_result.pkl"):
        (tmp_path / name).touch()
    asked = []
    monkeypatch.setattr(slurm.subprocess, "run", lambda command, **_: asked.append(command))
    slurm.cancel_earlier(tmp_path)
    slurm.cancel_earlier(tmp_path / "absent")
    assert asked == [["scancel", "7_1"]]


def test_no_slurm_is_one_message(monkeypatch, capsys, tmp_path, add_environment):
    add_environment("steady", seconds=[0.5, 0.1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (
        entry_point.main(["fleet", "run", "--framework=steady", "--task=gru", "--scale=smoke", "--slurm"])
        == 2
    )
    assert "Slurm is not installed on this machine" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["10.0.0.5:6379", "--head", "10.0.0.5"]])
def test_join_needs_one_address(words, capsys):
    assert entry_point.main(["fleet", "join", *words]) == 2
    assert "Name the address of the first node" in capsys.readouterr().err


def test_different_versions_of_ray_are_told_with_all_lines_about_them():
    output = (
        "Traceback\nRuntimeError: Version mismatch: The cluster has:\n    Ray: 2.60.0\n    Python: 3.11.9\n"
    )
    reason = joining.reason_in(output)
    assert reason.startswith("RuntimeError: Version mismatch") and reason.endswith("Python: 3.11.9")
    message = "All nodes need the same versions of Ray and Python"
    with pytest.raises(SteleError, match=message), cluster.told("Ray does not start on this machine"):
        raise RuntimeError(reason)
    assert joining.reason_in("usage\n\n  port is taken\n") == "port is taken"
    assert joining.reason_in("") == "it printed nothing"


def test_a_missing_token_is_told():
    exceptions = pytest.importorskip("ray.exceptions")
    message = "Set RAY_AUTH_TOKEN to the token of the cluster"
    with pytest.raises(SteleError, match=message), cluster.told("Cannot use the Ray cluster at auto"):
        raise exceptions.AuthenticationError("no token")


def test_joining_needs_the_token(monkeypatch, capsys):
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    assert entry_point.main(["fleet", "join", "10.0.0.5:6379"]) == 2
    assert "RAY_AUTH_TOKEN is not set" in capsys.readouterr().err


def test_the_content_of_the_status_has_a_schema_number(tmp_path):
    status.write(tmp_path / "status.json", state())
    assert json.loads((tmp_path / "status.json").read_text())["schema"] == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_interrupts_at_the_end_of_a_call_of_ray(number):
    done, before = [], signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), cluster.postponed_signals():
        os.kill(os.getpid(), number)
        done.append("the call")
    assert done == ["the call"] and signal.getsignal(number) is before
