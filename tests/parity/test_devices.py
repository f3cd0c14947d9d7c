"""Several devices: the settings, the ranks of a worker, and what rung 11 says."""

import ast
import copy
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from stele import environments
from stele.commands import gate as command
from stele.errors import SteleError
from stele.gate import correctness
from stele.measuring import measure, processors
from stele.measuring.run import Communication, Options
from stele.measuring.settings import Settings
from stele.parity import devices, examination, ladder
from stele.report import parity as parity_page
from stele_suite import tasks
from stele_worker import agreement, frameworks, measurement, process
from stele_worker.frameworks.base import Framework
from stele_worker.ranks import ranks

sys.path.insert(0, str(Path(__file__).parents[2] / "checks" / "devices"))
import faults
import faulty_worker

from studies import devices as scaling
from tests.support.command_lines import parse

TWO = Settings(device="cpu", threads=1, devices=2)
ONE = {
    "losses": [2.0, 1.9, 1.8],
    "gradients": {"w": [1.0, 0.5, -0.2], "b": [0.1, 0.1, 0.1]},
    "ranks": [{"samples": "all", "digest": "d"}],
    "statistics": "own",
    "score": None,
}
SAME = {**ONE, "ranks": [{"samples": "first", "digest": "d"}, {"samples": "second", "digest": "d"}]}


def compare(**changes):
    return devices.compare({**copy.deepcopy(SAME), **changes}, ONE, task="cnn", settings=TWO)


def test_the_same_numbers_agree_and_say_whose_statistics_they_are():
    finding = compare()
    assert (finding.status, finding.title) == ("agrees", "devices")
    line = parity_page.devices_line(environments.load("torch"), "cnn", finding, TWO)
    assert line == (
        "torch  cnn  2 devices, DistributedDataParallel: the same as one device "
        "(error 0.0e+00; batch statistics are those of each device)"
    )


@pytest.mark.parametrize(
    "changes, named",
    [
        ({"ranks": ONE["ranks"]}, "1 devices took part, not 2"),
        ({"ranks": [SAME["ranks"][0]] * 2}, "ranks 0 and 1 read the same samples"),
        (
            {"ranks": [SAME["ranks"][0], {"samples": "second", "digest": "other"}]},
            "the parameters of rank 1 differ from those of rank 0. Synchronise the gradients",
        ),
        (
            {"gradients": {"w": [2.0, 1.0, -0.4], "b": [0.2, 0.2, 0.2]}},
            "2 times that of one device: the sum over the ranks, not their mean",
        ),
        ({"gradients": {"w": [1.1, 0.5, -0.2], "b": [0.1, 0.1, 0.1]}}, "gradient of w: relative error 0.1"),
        ({"losses": [2.0, 1.9, 1.7]}, "relative error 0.05"),
        ({"losses": [2.0, 1.9, None]}, "relative error inf"),
    ],
)
def test_each_difference_is_named(changes, named):
    finding = compare(**changes)
    assert finding.status == "differs"
    assert named in ladder.message(finding)
    assert ladder.message(finding).startswith("devices differ (rung 11): ")


def compare_auc(several, one):
    numbers = ({**copy.deepcopy(SAME), "score": several}, {**ONE, "score": one})
    return devices.compare(*numbers, task="densenet121", settings=TWO)


def test_an_auc_that_differs_is_named_with_both_values():
    finding = compare_auc(0.55, 0.80)
    assert finding.status == "differs"
    assert ladder.message(finding).startswith(
        "devices differ (rung 11): AUC 0.550 with 2 devices, 0.800 with one; tolerance 0.05"
    )


def test_an_auc_within_the_tolerance_agrees_and_is_shown():
    finding = compare_auc(0.97, 1.0)
    assert finding.status == "agrees"
    assert finding.message == "batch statistics are those of each device; AUC 0.970 with 2 devices, 1.000 with one"


def test_a_gradient_that_differs_is_not_called_a_sum():
    finding = compare(gradients={"w": [1.1, 0.5, -0.2], "b": [0.1, 0.1, 0.1]})
    assert "sum" not in finding.message


@pytest.mark.parametrize(
    "changes, message", [({"devices": 0}, "--devices 0"), ({"scaling": "both"}, "Unknown value 'both' for --scaling")]
)
def test_impossible_settings_are_an_error(changes, message):
    with pytest.raises(SteleError, match=message):
        Settings(device="cpu", threads=1, **changes)


def test_a_request_for_one_device_has_no_settings_of_several():
    assert not {"devices", "scaling"} & Settings(device="cpu", threads=1).as_request(tuned=True).keys()
    assert TWO.as_request(tuned=True)["devices"] == 2
    assert TWO.summary() == "cpu, 2 devices, weak scaling, 1 thread each, fp32, seed 0"


def test_a_framework_without_a_recipe_for_several_devices_is_not_compared():
    assert devices.why_absent(environments.load("torch"), "cnn", TWO) is None
    reason = devices.why_absent(environments.load("lasagne"), "cnn", TWO)
    assert reason.endswith("has no recipe for several devices")


@pytest.mark.parametrize("name", ["tensorflow", "keras-tensorflow", "tensorflow-xla"])
def test_tensorflow_has_a_recipe_for_several_devices(name):
    environment = environments.load(name)
    assert environment.support.parallel == "MirroredStrategy"
    assert devices.why_absent(environment, "gru", TWO) is None


@pytest.mark.parametrize("name", environments.first_modes())
def test_an_environment_says_how_it_uses_several_devices_if_its_framework_can(name):
    environment = environments.load(name)
    source = Path(frameworks.__file__).with_name(environment.framework) / "framework.py"
    divides = source.exists() and re.search(
        r"^ +(self\.)?PARALLEL(,.*)? = (?!.*None$)", source.read_text(), re.MULTILINE
    )
    assert bool(divides) == bool(environment.support.parallel)


def test_fsdp_is_absent_on_one_device_and_says_so():
    fsdp = environments.load("torch-fsdp")
    assert devices.why_absent(fsdp, "gru", TWO) is None
    reason = fsdp.why_absent("gru", "train", device="cpu", precision="fp32")
    assert reason == "PyTorch, FSDP2 needs several devices: use --devices 2 or more"
    assert "cannot copy a network" in devices.why_absent(fsdp, "cifar-fast", TWO)
    line = parity_page.devices_line(fsdp, "gru", compare(statistics=None), TWO)
    assert line.startswith("torch-fsdp  gru  2 devices, fully_shard: the same as one device")


@pytest.mark.parametrize("name", ["paddle-to-static", "paddle-cinn", "keras-torch-jit"])
def test_a_mode_that_cannot_use_several_devices_is_absent_on_them_and_measured_on_one(name):
    mode = environments.load(name)
    assert devices.why_absent(mode, "gru", TWO) == f"{mode.label} has no recipe for several devices"
    assert not mode.support.several


def test_comparing_one_device_is_an_error(capsys):
    from stele.__main__ import main

    assert main(["parity", "--devices", "1", "--framework", "numpy"]) == 2
    assert "Use --devices 2 or more" in capsys.readouterr().err


@pytest.fixture
def two_ranks(monkeypatch):
    monkeypatch.setattr(ranks, "count", 2)
    monkeypatch.setattr(ranks, "processes", 2)


def test_the_ranks_share_a_batch(two_ranks, monkeypatch):
    rows = numpy.arange(6)
    assert ranks.share(rows).tolist() == [0, 1, 2]
    monkeypatch.setenv("RANK", "1")
    assert ranks.share(rows).tolist() == [3, 4, 5]
    with pytest.raises(ValueError, match="a batch of 5 samples cannot be divided by 2 devices"):
        ranks.share(rows[:5])


def test_one_rank_reads_the_whole_batch():
    assert ranks.share(numpy.arange(5)).tolist() == [0, 1, 2, 3, 4]


def test_weak_scaling_gives_each_device_the_batch_of_one(two_ranks):
    task = tasks.make("densenet121", "paper")
    changes = ranks.scaled(task, "weak")
    assert changes == {"batch": 2 * task.batch, "learning_rate": 2e-4, "train": 2 * task.train}
    assert ranks.scaled(task, "strong") == {}
    with pytest.raises(ValueError, match="a model of the user is measured on one device"):
        ranks.scaled(task, "weak", model={})


def test_phases_with_one_device_refuse_several(two_ranks):
    with pytest.raises(ValueError, match="'infer' uses one device, and 2 are configured"):
        ranks.only_training("infer")


def test_a_framework_without_ranks_refuses_several_devices():
    with pytest.raises(ValueError, match="chainer has no recipe for several devices"):
        ranks.configure(Framework("chainer"), {"devices": 2})
    ranks.configure(Framework("chainer"), {})
    assert (ranks.count, ranks.processes, ranks.shards) == (1, 1, 1)


def test_losses_of_ranks_are_averaged_and_memory_is_kept(monkeypatch):
    outcomes = [
        {"learning": {"losses": losses}, "memory": {"host": size, "device": None}}
        for losses, size in (([1.0, 2.0], 5), ([3.0, 2.0], 7))
    ]
    monkeypatch.setattr(ranks, "results", lambda own: outcomes)
    result = ranks.combined(outcomes[0])
    assert result["learning"]["losses"] == [2.0, 2.0]
    assert [each["host"] for each in result["memory"]["ranks"]] == [5, 7]


class InParts:
    """A framework with two devices in one process, and a copy of the network on each. A batch is a list of parts."""

    @staticmethod
    def fetch(value):
        return numpy.asarray(value)

    @staticmethod
    def copies(value):
        return list(value) if isinstance(value, list) else [value]

    @staticmethod
    def on_each_device(read, net):
        return [read(copy) for copy in net]


class Recipe:
    @staticmethod
    def stored(net):
        return {"w": numpy.array([net])}


def states(net):
    """Return the states of two devices whose copies of the network have the parameters ``net``."""
    networks = InParts.on_each_device(Recipe.stored, net)
    return agreement.states_of_devices(InParts, [[numpy.zeros(2), numpy.ones(2)]], networks)


def test_each_copy_of_a_network_in_one_process_is_compared():
    equal, different = states([1.0, 1.0]), states([1.0, 2.0])
    assert len(equal) == len(different) == 2
    assert equal[0]["digest"] == equal[1]["digest"] == different[0]["digest"] != different[1]["digest"]
    assert equal[0]["samples"] != equal[1]["samples"]


def test_durations_of_communication_are_those_of_the_slowest_rank(monkeypatch):
    outcomes = [
        {"memory": {"host": 1, "device": None}, "communication": {"with": [1.0, 2.0]}},
        {"memory": {"host": 1, "device": None}, "communication": {"with": [3.0, 1.0]}},
    ]
    monkeypatch.setattr(ranks, "results", lambda own: outcomes)
    assert ranks.combined(outcomes[0])["communication"] == {"with": [3.0, 2.0]}


class Recorded:
    """Communication whose calls are recorded."""

    def __init__(self, calls):
        self.calls, self.exchanges = calls, None

    def meet(self):
        self.calls.append("meet")

    def alone(self):
        self.calls.append("alone")


def test_steps_with_and_without_communication_take_turns_and_begin_together():
    calls = []
    communication = Recorded(calls)

    def step(batch):
        calls.append("with" if communication.exchanges else "without")

    step.communication = lambda: communication
    framework = SimpleNamespace(wait=lambda value: None, take=lambda data, rows: data)
    batches = measurement.Batches(framework, [numpy.arange(4)], [numpy.arange(4)], None, None)
    seconds = measurement.time_communication(step, batches, 2)
    assert calls == ["meet", "with", "meet", "without", "meet", "alone"] * 3
    assert {name: len(durations) for name, durations in seconds.items()} == dict.fromkeys(seconds, 2)


@pytest.mark.parametrize("name", ["torch", "keras-torch", "tensorflow", "paddle", "chainer"])
def test_a_step_can_leave_its_communication_out_and_do_it_alone(name):
    environment = environments.load(name)
    if environments.state(environment).status != "ready":
        pytest.skip(f"{name} is not ready: stele env make {name}")
    fields, _ = measure.inputs("gru")
    plan = measure.Plan("gru", "train", "smoke", options=Options(steps=2, communication=2), **fields)
    run = measure.side_by_side({name: environment}, plan, TWO)[name]
    durations = run.communication.with_, run.communication.without, run.communication.alone
    assert [len(seconds) for seconds in durations] == [2, 2, 2]


@pytest.mark.parametrize("name", faults.FAULTS)
def test_each_fault_of_a_framework_can_be_planted_and_has_a_message(name):
    planted = faulty_worker.PLANT[environments.load(name).framework]
    assert {"none", *planted} == {"none", *faults.FAULTS[name]}
    assert set(faults.FAULTS[name]) <= faults.MESSAGES.keys()


def test_a_method_of_a_framework_has_the_arguments_of_the_base_class():
    def methods(path):
        classes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
        functions = [node for one in classes for node in one.body if isinstance(node, ast.FunctionDef)]
        return {function.name: [argument.arg for argument in function.args.args] for function in functions}

    folder = Path(frameworks.__file__).parent
    known = methods(folder / "base.py")
    paths = sorted(folder.glob("*/framework.py"))
    assert len(paths) > 10
    for path in paths:
        for name, arguments in methods(path).items():
            assert arguments == known.get(name, arguments), f"{name} in {path}"


@pytest.mark.parametrize(
    "step, share",
    [(1.0, 1.0), (1.5, 0.0), (1.25, 0.5), (2.0, -1.0)],
)
def test_overlap_is_the_share_of_the_communication_that_did_not_make_a_step_longer(step, share):
    assert scaling.overlap(Communication(with_=(step,), without=(1.0,), alone=(0.5,))) == share


def test_a_recipe_without_a_step_that_leaves_communication_out_has_empty_columns():
    assert scaling.communication([]) == ("", "")


def test_by_default_the_first_modes_and_those_for_several_devices_are_measured(monkeypatch):
    ready = [environments.load(name) for name in ("torch", "torch-compile", "torch-fsdp")]
    monkeypatch.setattr(scaling, "environments_with", lambda *cell: ready)
    assert [one.name for one in scaling.selected("cnn", TWO, None)] == ["torch", "torch-fsdp"]
    assert scaling.selected("cnn", TWO, ["torch-compile"]) == ready  # which environments_with has selected


def test_a_mode_for_several_devices_is_compared_with_the_first_mode_on_one():
    single = {name: scaling.on_one_device(environments.load(name)).name for name in ("torch-fsdp", "torch-compile")}
    assert single == {"torch-fsdp": "torch", "torch-compile": "torch-compile"}


def test_each_rank_has_its_own_processors(monkeypatch):
    taken = []
    monkeypatch.setattr(process.os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(process.os, "sched_setaffinity", lambda pid, numbers: taken.append(numbers), raising=False)
    for rank in range(3):
        process.limit_processors(2, rank)
    assert taken == [[0, 1], [2, 3], [0, 1]]


def test_devices_of_the_processor_do_not_share_processors(monkeypatch):
    from pytest_stele.session import threads_of_each

    monkeypatch.setattr(processors, "count", lambda: 4)
    monkeypatch.setattr("stele.measuring.devices.first", lambda: "0")
    assert [threads_of_each(count, None) for count in (1, 2, 4, 8)] == [4, 2, 1, 1]
    Settings(device="cpu", devices=2, threads=2).check_machine()
    with pytest.raises(SteleError, match="--devices 8 with 1 threads each needs 8 processors"):
        Settings(device="cpu", devices=8, threads=1).check_machine()
    with pytest.raises(SteleError, match="needs 6 processors"):
        Settings(device="cpu", devices=2, threads=3).check_machine()
    Settings(device="cuda", devices=8, threads=1).check_machine()


def gate_of(*options):
    chosen = parse("gate", "torch", "jax", *options)
    return command.trial_from(chosen.pair, chosen.judged)


def test_a_gate_on_several_devices_judges_training_on_all_of_them(monkeypatch):
    monkeypatch.setattr(processors, "count", lambda: 2)
    trial = gate_of("--devices=2", "--scaling=strong", "--task=cnn,gru")
    assert (trial.settings.devices, trial.settings.scaling) == (2, "strong")
    assert [cell.phase for cell in trial.cells] == ["train", "train"]
    assert trial.common_cells() == list(trial.cells)


def test_a_gate_on_several_devices_excludes_environments_that_cannot_use_them(monkeypatch):
    monkeypatch.setattr(processors, "count", lambda: 2)
    trial = replace(gate_of("--devices=2"), new=environments.load("cntk"))
    assert trial.common_cells() == []
    command.require_cells(trial)  # NEW lacks what OLD has, which is a verdict
    with pytest.raises(SteleError, match="Neither OLD nor NEW can measure cnn train: CNTK"):
        command.require_cells(replace(trial, old=environments.load("cntk")))


@pytest.mark.parametrize(
    "options, message",
    [
        (["--devices=3"], "--devices 3 with 1 threads each needs 3 processors"),
        (["--devices=2", "--phase=infer"], "Inference uses one device"),
        (["--devices=2", "--metric=time-to-target"], "--metric time-to-target is measured on one device"),
        (["--devices=2", "--metric=step,fed-step"], "--metric fed-step is measured on one device"),
        (["--devices=2", "--model=hf-tiny:bert"], "A model of the user is measured on one device"),
    ],
)
def test_a_gate_refuses_what_several_devices_cannot_do(monkeypatch, options, message):
    monkeypatch.setattr(processors, "count", lambda: 2)
    with pytest.raises(SteleError, match=message):
        gate_of(*options)


@pytest.mark.parametrize("count, expected", [(1, [9]), (2, [9, 11])])
def test_the_parity_of_a_gate_has_the_rung_of_its_devices(monkeypatch, count, expected):
    def climbed(rung, device_counts):
        def run_ladder(environment, task, settings, timeout):
            device_counts.append(settings.devices)
            return ladder.LadderResult([ladder.Finding(rung, "agrees")], {}, "")

        return run_ladder

    of_one, of_all = [], []
    monkeypatch.setattr(processors, "count", lambda: 2)
    monkeypatch.setattr(examination, "run_ladder", climbed(9, of_one))
    monkeypatch.setattr(devices, "run_ladder", climbed(11, of_all))
    findings, failure = correctness.climb(gate_of(f"--devices={count}"), "cnn", "new")
    assert [finding.rung for finding in findings] == expected and failure is None
    assert (of_one, of_all) == ([1], [count] * (count > 1))
