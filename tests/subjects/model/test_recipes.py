"""Recipes and tasks in files of the user: which files are collected, what is derived or refused, and error texts."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from stele.errors import SteleError
from stele.subjects import Model
from stele.subjects.model import recipes, spec
from stele_worker import agreement, frameworks, subjects, verbs
from stele_worker.models import building, naming, recipe_files, sources
from stele_worker.models import inspection as worker_inspection
from stele_worker.models.errors import SpecError, UserCodeError
from stele_worker.models.task_files import TaskFile
from tests.support import user_recipes
from tests.support.user_projects import RECIPE, TASK, change

WARMUP = {"window": 1, "tolerance": 0.5, "most": 3}


class Host:
    def report(self, **fields):
        pass

    def pause(self, done):
        pass


def do(project, verb, **fields):
    """Carry out a request as a worker does, in this process."""
    request = {"task": "spirals", "seed": 0, "model": user_recipes.described(project, "spirals", "numpy"), **fields}
    if verb in ("train", "infer"):
        request.update(scale="smoke", data=None, weights=None, warmup=WARMUP)
    verbs.configuration.update(framework=frameworks.load("numpy"), dtype="float32", scaling="weak")
    try:
        return verbs.do({"verb": verb, **request}, Host())
    finally:
        verbs.configuration.clear()


def test_a_path_names_a_recipe_and_its_task(project):
    for text in (RECIPE, f"{RECIPE}:network"):
        model = spec.parse(text, project)
        assert (model.spec, model.name, model.folder) == (RECIPE, "spirals", project)
        assert (model.recipe, model.task) == (project / RECIPE, project / TASK)
    below = spec.parse(f"../{RECIPE}", project / "tasks")
    assert below.folder == project and below.spec == RECIPE


def test_another_file_below_recipes_is_a_model_as_before(project):
    user_recipes.write(project, {"recipes/spirals/model.py": "def network(): ..."})
    model = spec.parse("recipes/spirals/model.py:network", project)
    assert model.recipe is None and model.name == "recipes/spirals/model.py:network"


def test_a_task_with_the_name_of_a_built_in_one_has_another_name():
    assert recipes.task_name(Path("recipes/cnn/torch.py")) == "recipes/cnn"


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("recipes/a/torch.py", "x = 1", "does not define the function network"),
        ("recipes/a/torhc.py", "def network(): ...", "Unknown framework 'torhc'. Did you mean 'torch'"),
        (
            "recipes/a/numpy.py",
            "def network(): ...\ndef load(): ...",
            "nothing can be derived for numpy, .* Define also: gradients, training_step, inference_step, stored",
        ),
    ],
)
def test_a_recipe_that_cannot_be_used_has_a_reason(tmp_path, path, content, message):
    user_recipes.write(tmp_path, {path: content})
    with pytest.raises(SteleError, match=message):
        spec.parse(path, tmp_path)


def test_names_that_a_recipe_imports_count_as_defined(tmp_path):
    user_recipes.write(tmp_path, {"recipes/a/torch.py": "from mine import build as network"})
    assert recipes.why_unusable(tmp_path / "recipes/a/torch.py") is None


def test_the_gate_judges_the_accuracy_if_answers_can_be_counted(tmp_path):
    for counts in (True, False):
        assert Model("spirals", tmp_path, accuracy=counts).has_accuracy("spirals") is counts


def test_the_recipe_for_onnx_is_measured_in_inference(tmp_path, monkeypatch):
    class Session:
        def __init__(self, path, options):
            assert Path(path) == tmp_path / "recipes/speech/gru.onnx"

        def get_inputs(self):
            return [SimpleNamespace(name="x")]

        def run(self, outputs, inputs):
            return [inputs["x"].mean(1)]

    monkeypatch.setattr(sys, "path", sys.path[:])
    runtime = SimpleNamespace(InferenceSession=Session, SessionOptions=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    user_recipes.write(tmp_path, user_recipes.example("A model in ONNX"))
    recipe = spec.parse("recipes/speech/numpy.py", tmp_path)
    found = worker_inspection.inspect(recipe.as_request())
    assert found["summary"].startswith("NumPy: no parameters; inputs 32x20x8 from example_inputs()")
    assert found["output"] == [32, 8]


def test_the_scales_have_their_numbers_of_steps(project):
    counts = {}
    for scale in ("smoke", "study", "gate", "quick", "paper"):
        file = TaskFile(user_recipes.described(project, "spirals", "numpy"))
        task = file.task(scale)
        counts[scale] = [len(file.rows(task, part, scale)) for part in ("train", "test", "infer")]
    assert counts == {
        "smoke": [10, 5, 5],
        "study": [40, 40, 80],
        "gate": [50, 50, 50],
        "quick": [60, 60, 60],
        "paper": [300, 60, 60],
    }


def test_few_samples_are_repeated_until_there_are_enough_steps(project):
    (project / TASK).write_text("import numpy as np\ndef samples(part): return np.zeros((70, 2)), np.arange(70) % 3")
    file = TaskFile(user_recipes.described(project, "spirals", "numpy"))
    task = file.task("gate")
    assert (task.batch, task.epochs, task.train) == (32, 25, 70)
    assert len(file.rows(task, "train", "gate")) == 50 and len(file.rows(task, "infer", "gate")) == 50
    assert len(file.rows(task, "test", "gate")) == 2


def test_scales_of_the_task_come_first(project):
    with (project / TASK).open("a") as file:
        file.write("\nSCALES = {'smoke': {'EPOCHS': 2, 'TRAIN': 64, 'LEARNING_RATE': 0.25}}\n")
    task = TaskFile(user_recipes.described(project, "spirals", "numpy")).task("smoke")
    assert (task.epochs, task.train, task.test, task.learning_rate, task.width) == (2, 64, 1920, 0.25, 64)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("X = 1", "tasks/spirals.py does not define the function samples"),
        (
            "def samples(part): return 3",
            r"samples\('train'\) returned 3. Return the inputs and then the target",
        ),
        ("def samples(part): return np.ones((9, 2)), np.ones(8)", "have 9 and 8 rows"),
        ("def samples(part): return np.ones((9, 2)), ['a']", "Return NumPy arrays of numbers"),
        ("def samples(part): return np.ones((9, 2)), np.ones(9)", "has 9 rows, fewer than one batch of 32"),
        ("def samples(part): return np.ones((32, 2)), np.full(32, 2**40)", "integers above"),
        ("BATCH = 0\ndef samples(part): return np.ones((32, 2)), np.ones(32)", "BATCH = 0 is not a positive"),
        ("LAMBDA = 2\ndef samples(part): return np.ones((32, 2)), np.ones(32)", "rename the constant LAMBDA"),
        ("MODEL = 'a'\ndef samples(part): return np.ones((32, 2)), np.ones(32)", "rename the constant MODEL"),
    ],
)
def test_a_wrong_task_is_answered_with_what_to_write(project, content, message):
    (project / TASK).write_text("import numpy as np\n" + content)
    with pytest.raises(SpecError, match=message):
        TaskFile(user_recipes.described(project, "spirals", "numpy")).task("paper")


def test_without_labels_there_is_no_accuracy(project):
    change(project, TASK, "1), arm", "1), arm.astype(float)")
    file = TaskFile(user_recipes.described(project, "spirals", "numpy"))
    assert file.task("smoke").data is None and not file.counts()


def test_answers_are_counted_by_the_largest_output_or_by_the_task(project):
    file = TaskFile(user_recipes.described(project, "spirals", "numpy"))
    output, target = numpy.eye(3)[[0, 1, 2, 2]], numpy.array([0, 1, 2, 0])
    assert file.correct(output, target) == 3
    assert file.correct(output.reshape(2, 2, 3), target.reshape(2, 2)) == 1.5  # of two samples with two labels each
    with pytest.raises(SpecError, match=r"define correct\(output, target\). The output has shape \(4, 1\)"):
        file.correct(output[:, :1], target)
    with (project / TASK).open("a") as content:
        content.write("\ndef correct(output, target): return len(target) - 1\n")
    del sys.modules["stele_user_tasks_spirals"]
    assert TaskFile(user_recipes.described(project, "spirals", "numpy")).correct(output, target) == 3


def test_parity_switches_dropout_off_whatever_its_form(project):
    for text, expected in (("()", (0.0,)), ("(0.5, 0.2)", (0.0, 0.0)), ("0.5", (0.0,))):
        (project / TASK).write_text(user_recipes.example()[TASK] + f"\nDROPOUT = {text}\n")
        sys.modules.pop("stele_user_tasks_spirals", None)
        found = subjects.find(
            frameworks.load("numpy"),
            "",
            "smoke",
            0,
            "float32",
            None,
            user_recipes.described(project, "spirals", "numpy"),
        )
        assert found.without_dropout().task.dropout == expected


@pytest.mark.parametrize(
    ("verb", "path", "old", "new"),
    [
        ("train", TASK, "rng = np.random.RandomState({", "rng = np.random.RandomStat({"),
        ("train", TASK, "def weights(seed):", "def weights(seed):\n    1 / 0"),
        ("train", RECIPE, "return {}", "return task.nothing"),
        ("train", RECIPE, "return loss, grads", "return los, grads"),
        ("infer", RECIPE, "return lambda x: forward(net, x)[1]", "return lambda x: forward(net, x)[7]"),
        ("parity", RECIPE, "return net\n\n\ndef forward", "return nets\n\n\ndef forward"),
        ("train", RECIPE, "return {}", "return {"),
        (
            "train",
            TASK,
            "def weights(seed):",
            "def correct(output, target): return output.no\n\ndef weights(seed):",
        ),
    ],
)
def test_every_error_of_a_users_file_has_its_line(project, verb, path, old, new):
    change(project, path, old, new)
    with pytest.raises(UserCodeError) as error:
        do(project, verb, **({"phase": "infer"} if verb == "parity" else {}))
    assert f"{project / path}" in str(error.value) and "line " in str(error.value)
    assert "stele_worker" not in str(error.value)


def test_an_error_that_is_not_the_users_stays_as_it_is(project, monkeypatch):
    monkeypatch.setattr(agreement, "check", lambda *values, **named: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        do(project, "parity", phase="infer")


def derive(project, content, weights):
    """Return the names that ``naming`` derives for a framework with two parameters."""
    user_recipes.write(project, {RECIPE: "def network(): ...\n" + content})
    held = {"a.kernel": numpy.arange(6.0).reshape(2, 3), "a.bias": numpy.arange(3.0)}
    base = SimpleNamespace(
        stored=dict,
        load=lambda net, arrays: {**net, **arrays},
        gradients=lambda net, task: lambda: (0.0, net),
    )
    source = sources.find(user_recipes.described(project, "spirals", "numpy"))
    return naming.make(source, base, weights), held


WEIGHTS = {"a.weight": numpy.arange(6.0).reshape(3, 2) ** 2, "a.bias": numpy.arange(3.0) + 7}
NAMES = "NAMES = {'a.kernel': 'a.weight'}\n"


def test_the_opposite_of_neutral_is_derived(project):
    made, held = derive(project, NAMES + "def neutral(name, array): return array.T", WEIGHTS)
    net = made.load(held, WEIGHTS)
    assert net["a.kernel"].shape == (2, 3)
    for name, value in made.stored(net).items():
        numpy.testing.assert_array_equal(made.neutral(name, value), WEIGHTS[name])
    assert set(made.gradients(net, None)()[1]) == set(WEIGHTS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "",
            "the task has weights 'a.weight', but the parameters are a.kernel, .*NAMES = {'a.kernel': 'a.weight'}",
        ),
        (NAMES, r"'a.weight' has shape \(3, 2\) in the task, but \(2, 3\) in the network. Define neutral"),
        (NAMES + "def neutral(name, array): return 0 * array.T", "does more than reorder numbers"),
    ],
)
def test_parameters_that_do_not_fit_are_answered_with_what_to_define(project, content, message):
    made, held = derive(project, content, WEIGHTS)
    with pytest.raises(SpecError, match=message):
        made.load(held, WEIGHTS)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "jax",
            "def network(): ...\ndef load(): ...",
            "defines load but not gradients, .* define all or none",
        ),
        ("numpy", "def network(): ...", "nothing can be derived for 'numpy'"),
        ("torch", "def netwrok(): ...", "does not define the function network.* Did you mean 'netwrok'"),
    ],
)
def test_a_file_that_defines_too_little_is_refused(project, name, content, message):
    user_recipes.write(project, {f"recipes/spirals/{name}.py": content})
    with pytest.raises(SpecError, match=message):
        model = user_recipes.described(project, "spirals", name)
        recipe_files.recipe(model, sources.find(model))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("def network(task, width): ...", r"network\(task, width\) takes more than the task"),
        (
            "def network(task): return None",
            "line 1: network.. returned None, which is not a model of PyTorch",
        ),
        ("def network(): return 3", "line 1: network.. returned 3, which is not a model of PyTorch"),
        (
            "def network(): return len, max",
            "returned a model of JAX, but the file is named after PyTorch. Rename",
        ),
    ],
)
def test_a_network_of_another_kind_is_refused_with_its_line(project, content, message):
    user_recipes.write(project, {"recipes/spirals/torch.py": content})
    source = sources.find(user_recipes.described(project, "spirals", "torch"))
    with pytest.raises(SpecError, match=message):
        building.build_network(source, None)
