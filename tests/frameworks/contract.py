"""What every derived recipe must do, for the tests of each framework."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy

from stele.parity import reference
from stele_suite import tasks
from stele_worker import agreement, frameworks, subjects
from stele_worker.models import inspection, outputs
from stele_worker.models.task import example

sys.dont_write_bytecode = False  # or nothing could be left in the project, whatever the worker does
warnings.simplefilter("default")  # frameworks warn while they are imported; the project's settings make that errors
PROJECT = Path(__file__).parent / "project"
REPOSITORY = Path(__file__).parents[2]
VARIABLES = dict(os.environ)  # before a framework is configured
SETTINGS = {
    "device": "cpu",
    "threads": 1,
    "precision": "fp32",
    "autotune": True,
    "deterministic": False,
    "seed": 0,
}


def configure(name):
    """Configure a framework in its first mode, and return it."""
    framework = frameworks.load(name)
    framework.configure(framework.resolve(SETTINGS))
    return framework


def flags_of_a_users_model(name, tuned=False, **variables):
    """Return the flags of a framework in a fresh process that is configured for a model of the user."""
    code = (
        "import json; from tests.frameworks import contract; from stele_worker import frameworks; "
        "frameworks.tuned = {1}; "
        "settings = dict(contract.SETTINGS, precision='default', tuned={1}); framework = frameworks.load({0!r}); "
        "framework.configure(framework.resolve(settings)); print(json.dumps(framework.flags()))"
    )
    command = [sys.executable, "-W", "ignore", "-c", code.format(name, tuned)]
    environment = {**VARIABLES, **variables}
    printed = subprocess.run(command, env=environment, cwd=REPOSITORY, stdout=-1, check=True).stdout
    return json.loads(printed.splitlines()[-1])


def described(spec, **changes):
    """The host's dict of a model."""
    empty = {"inputs": None, "optimizer": None, "pretrained": None, "weights": None}
    return {"spec": spec, "folder": str(PROJECT), **empty, **changes}


class Arm:
    """A model in a framework, resolved as a worker does it."""

    def __init__(self, framework, spec, quiet=False, dtype="float32", **changes):
        self.task, self.recipe = inspection.resolve(described(spec, **changes), framework, "smoke", 3, dtype)
        self.framework = frameworks.load(framework)
        if quiet:
            self.task = tasks.without_dropout(self.task)
        self.net = self.recipe.network(self.task)
        self.batch = [self.framework.put(array) for array in example(self.task, self.task.batch)]
        self.inputs = self.batch[: len(self.task.inputs)]

    def fetch(self, value):
        return numpy.array(self.framework.fetch(value))

    def stored(self):
        return {name: self.fetch(value) for name, value in self.recipe.stored(self.net).items()}

    def losses(self, count=5):
        step = self.recipe.training_step(self.net, self.task)
        return [float(self.fetch(step(*self.batch))) for _ in range(count)]

    def infer(self):
        """Return the main output."""
        return self.fetch(outputs.main(self.recipe.inference_step(self.net, self.task)(*self.inputs)))

    def outputs(self):
        """Return all outputs by name."""
        value = self.recipe.inference_step(self.net, self.task)(*self.inputs)
        return {
            name: numpy.array(outputs.fetch(one, self.framework.fetch)) for name, one in outputs.named(value).items()
        }

    def gradients(self):
        _, gradients = self.recipe.gradients(self.net, self.task)(*self.batch)
        return {name: self.fetch(value) for name, value in gradients.items()}


def assert_equal(first, second):
    assert list(first) == list(second)
    for name in first:
        numpy.testing.assert_array_equal(first[name], second[name], err_msg=name)


def all_outputs_are_returned(framework, spec, names, shapes):
    """An inspection and an inference step name all outputs; parity has the numbers of those beside the first."""
    found = inspection.inspect(described(spec))
    assert [one["name"] for one in found["outputs"]] == names
    assert f"; {len(names)} outputs: {names[0]} " in found["summary"]
    assert found["loss"] == f"cross-entropy over the last axis of the output {names[0]}"
    arrays = Arm(framework, spec).outputs()
    assert {name: array.shape for name, array in arrays.items()} == dict(zip(names, shapes, strict=True))
    module = frameworks.load(framework)
    plain, flipped = (
        agreement.check(
            module,
            subjects.find(module, None, "paper", 3, "float32", model=described(spec)),
            "infer",
            flip=flip,
        )
        for flip in (False, True)
    )
    assert list(plain["outputs"]) == names[1:] and plain["repeats"]
    for name in names[1:]:
        numbers = [numpy.array(one["outputs"][name]["numbers"]) for one in (plain, flipped)]
        numpy.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-4, err_msg=name)


def training_is_told(framework, spec, flag):
    """The flag of a model, with which its logits are twice as large, is passed in both phases."""
    arm = Arm(framework, spec, quiet=True)
    logits, labels = 2 * arm.infer(), arm.fetch(arm.batch[-1]).astype(int)
    likely = logits - numpy.log(numpy.exp(logits).sum(-1, keepdims=True))
    expected = -likely[numpy.arange(len(labels)), labels].mean()
    assert abs(arm.losses(1)[0] - expected) < 1e-4 * expected
    assert inspection.inspect(described(spec))["summary"].endswith("; Stele passes " + flag)


def loss_falls(framework, spec):
    losses = Arm(framework, spec, quiet=True).losses(20)
    assert losses[-1] < losses[0]


def construction_repeats(framework, spec):
    arm = Arm(framework, spec)
    first = arm.stored()
    arm.net = arm.recipe.network(arm.task)
    assert_equal(first, arm.stored())


def round_trip_is_exact(framework, spec, path):
    """What ``stored`` gives after training, written to an .npz, is what another network holds that loads it."""
    trained = Arm(framework, spec)
    trained.losses(3)
    numpy.savez(path, **trained.stored())
    loaded = Arm(framework, spec, weights=str(path))
    assert_equal(trained.stored(), loaded.stored())
    numpy.testing.assert_array_equal(trained.infer(), loaded.infer())


def round_trip_is_exact_in_another_process(framework, spec, path):
    trained = Arm(framework, spec)
    trained.losses(3)
    numpy.savez(path, **trained.stored())
    command = [sys.executable, __file__, framework, spec, str(path)]
    other = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    mine = {name: float(value.astype("float64").sum()) for name, value in trained.stored().items()}
    assert json.loads(other.stdout.splitlines()[-1]) == mine


def without_dropout_training_repeats(framework, spec, disturb=None):
    """Training does not depend on random numbers: ``disturb`` changes the state of their generator."""
    first, second = Arm(framework, spec, quiet=True), Arm(framework, spec, quiet=True)
    expected = first.losses()
    if disturb is None:
        second.recipe.seed(99)
    else:
        disturb(second)
    assert second.losses() == expected


def parity_sees_every_update(framework, spec):
    """The worker's parity answers hold gradients, and updates that are not zero wherever a gradient is not."""
    module = frameworks.load(framework)
    subject = subjects.find(module, None, "smoke", 3, "float32", model=described(spec))
    numbers = agreement.check(module, subject, "train")
    assert numbers["unequal"] == {}
    stored = Arm(framework, spec).stored()
    for steps in ("1", "10"):
        assert set(numbers["updates"][steps]) == set(stored) >= set(numbers["gradients"])
    assert numpy.isfinite(numpy.asarray(numbers["trained"])).all()
    assert set(numbers["dtypes"]["others"]) == {"float32"}
    # a sketch begins with the norm; rounding hides an update by a tiny gradient
    moved = {name for name, grad in numbers["gradients"].items() if grad[0] > 1e-4}
    assert moved and all(numbers["updates"]["1"][name][0] > 0 for name in moved)
    assert len(set(numbers["losses"])) > 1


def parity_sees_the_running_statistics(framework, spec, *parts):
    """What training changes without a gradient is in the updates: names of stored arrays that contain ``parts``."""
    module = frameworks.load(framework)
    subject = subjects.find(module, None, "smoke", 3, "float32", model=described(spec))
    numbers = agreement.check(module, subject, "train")
    for part in parts:
        names = [name for name in numbers["updates"]["1"] if part in name and name not in numbers["gradients"]]
        assert names and all(numbers["updates"]["1"][name][0] > 0 for name in names)


def with_dropout_two_steps_differ(framework, spec):
    arm = Arm(framework, spec)
    first = arm.gradients()
    second = arm.gradients()
    assert any((first[name] != second[name]).any() for name in first)


def inference_repeats(framework, spec):
    arm = Arm(framework, spec)
    numpy.testing.assert_array_equal(arm.infer(), arm.infer())
    assert arm.infer().dtype == numpy.float32


def gradients_are_of(framework, spec, names):
    arm = Arm(framework, spec)
    gradients = arm.gradients()
    assert list(gradients) == list(names)
    assert set(gradients) <= set(arm.stored())
    assert all(gradients[name].shape == arm.stored()[name].shape for name in gradients)


def facts_are_of_what_is_stored(framework, spec):
    """The facts have the names and the shapes of what ``stored`` returns; trained are those that have gradients."""
    arm = Arm(framework, spec)
    facts, stored = arm.recipe.facts(arm.net), arm.stored()
    again = {name for group in facts["tied"] for name in group[1:]}
    arrays = [each for each in facts["arrays"] if each["name"] not in again]
    assert {each["name"]: tuple(each["shape"]) for each in arrays} == {
        name: value.shape for name, value in stored.items()
    }
    assert all(numpy.dtype(each["dtype"]) for each in arrays)
    assert set(arm.gradients()) <= {each["name"] for each in arrays if each["parameter"]}


def change_between_processes(framework, spec, folder, inputs):
    """Return what a second process computes in another way, from the weights that the first one saved; or None."""
    facts = described(spec, inputs=[{"name": None, "kind": "float", "shape": inputs, "high": None}])
    code = (
        "import json; from tests.frameworks import contract; from stele_worker import agreement, protocol, subjects; "
        "given = json.loads({1!r}); module = contract.configure({0!r}); "
        "subject = subjects.find(module, None, 'paper', 3, 'float32', model=given['model']); "
        "print(protocol.encode(agreement.check(module, subject, 'infer', save=given['save'])))"
    )
    answers = []
    for read, save in ((None, str(folder / "w.npz")), (str(folder / "w.npz"), None)):
        given = json.dumps({"model": {**facts, "weights": read}, "save": save})
        command = [sys.executable, "-W", "ignore", "-c", code.format(framework, given)]
        printed = subprocess.run(
            command,
            env={**VARIABLES, "PYTHONHASHSEED": "0"},
            cwd=REPOSITORY,
            stdout=-1,
            check=True,
        ).stdout
        answers.append(json.loads(printed.splitlines()[-1]))
    first, again = answers
    assert first["repeats"] and again["repeats"]
    return reference.change_between_processes(again, first, precision="fp32")


def nothing_is_left_in_the_project():
    assert not list(PROJECT.rglob("__pycache__"))


if __name__ == "__main__":
    configure(sys.argv[1])
    arrays = Arm(sys.argv[1], sys.argv[2], weights=sys.argv[3]).stored()
    print(json.dumps({name: float(value.astype("float64").sum()) for name, value in arrays.items()}))
