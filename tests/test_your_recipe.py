"""Recipes and tasks in files of the user: which files are collected, what is derived or refused, and error texts."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

import yours
from pytest_stele import plugin
from stele import environments
from stele.errors import SteleError
from stele.gate import correctness
from stele.gate.trial import Cell
from stele.measuring import store
from stele.measuring.settings import Settings
from stele.models import inspection, recipes, spec
from stele.parity import ladder
from stele.parity import recipes as parity
from stele_worker import agreement, frameworks, models, protocol, subjects, verbs
from stele_worker.models import naming, recipe_files
from stele_worker.models.errors import SpecError, UserCodeError
from stele_worker.models.task_files import TaskFile

RECIPE, TASK = "recipes/spirals/numpy.py", "tasks/spirals.py"
WARMUP = {"window": 1, "tolerance": 0.5, "most": 3}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A user's folder with the example of the documentation and a recipe in NumPy; imports are undone."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    before, folder = set(sys.modules), tmp_path / "project"
    yours.write(folder, {**yours.example(), RECIPE: yours.NUMPY, "pytest.ini": "[pytest]\n"})
    yield folder
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def run_pytest(project, tmp_path):
    """run_pytest(*options) runs pytest in the project."""

    def run(*arguments):
        names = {"STELE_CACHE": str(tmp_path / "cache"), "STELE_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": ""}
        variables = {name: value for name, value in {**os.environ, **names}.items() if value}
        return yours.run_pytest(project, variables, *arguments, timeout=120)

    return run


def change(project, path, old, new):
    content = (project / path).read_text()
    assert old in content
    (project / path).write_text(content.replace(old, new, 1))


class Host:
    def report(self, **fields):
        pass

    def pause(self, done):
        pass


def do(project, verb, **fields):
    """Carry out a request as a worker does, in this process."""
    request = {"task": "spirals", "seed": 0, "model": yours.described(project, "spirals", "numpy"), **fields}
    if verb in ("train", "infer"):
        request.update(scale="smoke", data=None, weights=None, warmup=WARMUP)
    verbs.configuration.update(framework=frameworks.load("numpy"), dtype="float32", scaling="weak")
    try:
        return verbs.do({"verb": verb, **request}, Host())
    finally:
        verbs.configuration.clear()


# pytest


@pytest.fixture
def without_frameworks(tmp_path, monkeypatch):
    """Let the processes of a test find neither PyTorch nor JAX, wherever the tests run."""
    folder = tmp_path / "without"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules.update(torch=None, jax=None)\n")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)


@pytest.mark.usefixtures("without_frameworks")
def test_a_recipe_is_measured_and_one_without_its_framework_is_skipped_with_the_command(run_pytest, project):
    output = run_pytest("recipes", "--stele-scale=smoke", "-v")
    for name in ("train", "infer", "parity"):
        assert f"{RECIPE}::{name}" in output
    assert "3 passed, 6 skipped" in output, output
    assert "torch is not installed. Run: pip install torch" in output
    assert "jax is not installed. Run: pip install jax" in output
    assert "benchmark 'spirals train': 1 tests" in output
    runs = store.load_all(project / ".stele/runs")
    assert sorted(run.phase for run in runs) == ["infer", "train"]
    trained = next(run for run in runs if run.phase == "train")
    assert trained.task == "spirals" and trained.accuracy > 0.4 and trained.evaluated == 160
    assert trained.data["origin"] == TASK
    assert not list(project.rglob("__pycache__"))


def test_a_named_test_of_a_file_runs_alone_and_the_file_is_not_imported(run_pytest, project):
    change(
        project, RECIPE, "import numpy as np", "import numpy as np, sys\nassert 'pytest' not in sys.modules"
    )
    output = run_pytest(f"{RECIPE}::infer", "--stele-scale=smoke")
    assert "1 passed" in output, output


def test_an_error_in_a_step_shows_the_users_line_and_no_other(run_pytest, project):
    change(project, RECIPE, "loss, grads = run(x, y)", "loss, grads = run(x)")
    output = run_pytest(f"{RECIPE}::train")
    line = 1 + (project / RECIPE).read_text().splitlines().index("        loss, grads = run(x)")
    assert "recipes/spirals/numpy.py raised TypeError: " in output
    assert f'numpy.py", line {line}, in step' in output
    for other in ("stele_worker", "Traceback", "failed during"):
        assert other not in output, output


def test_frameworks_that_an_option_leaves_out_are_skipped(run_pytest):
    output = run_pytest("recipes/spirals/torch.py", "--stele-framework=chainer")
    assert "3 skipped" in output, output
    assert "has no environment with torch" in output


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("recipes/mine/torch.py", "def network(task): ...", True),
        ("recipes/mine/torch.py", "def soup(): ...", False),
        ("recipes/mine/cook.py", "def network(task): ...", False),
        ("recipes/torch.py", "def network(task): ...", False),
        ("stele_worker/recipes/cnn/torch.py", "def network(task): ...", False),
    ],
)
def test_only_recipes_are_collected(tmp_path, path, content, expected):
    yours.write(tmp_path, {path: content})
    assert plugin.is_recipe(tmp_path / path) is expected


def test_the_plugin_knows_every_framework_of_recipes():
    assert set(plugin.RECIPES) == set(recipes.FRAMEWORKS)
    assert recipe_files.DERIVED == recipes.DERIVED and recipe_files.STEPS == recipes.STEPS


# the host


def test_a_path_names_a_recipe_and_its_task(project):
    for text in (RECIPE, f"{RECIPE}:network"):
        model = spec.parse(text, project)
        assert (model.spec, model.name, model.folder) == (RECIPE, "spirals", project)
        assert (model.recipe, model.task) == (project / RECIPE, project / TASK)
    below = spec.parse(f"../{RECIPE}", project / "tasks")
    assert below.folder == project and below.spec == RECIPE


def test_another_file_below_recipes_is_a_model_as_before(project):
    yours.write(project, {"recipes/spirals/model.py": "def network(): ..."})
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
    yours.write(tmp_path, {path: content})
    with pytest.raises(SteleError, match=message):
        spec.parse(path, tmp_path)


def test_names_that_a_recipe_imports_count_as_defined(tmp_path):
    yours.write(tmp_path, {"recipes/a/torch.py": "from mine import build as network"})
    assert recipes.why_unusable(tmp_path / "recipes/a/torch.py") is None


def test_the_gate_judges_the_accuracy_if_answers_can_be_counted():
    for counts in (True, False):
        trial = SimpleNamespace(model=SimpleNamespace(accuracy=counts))
        assert correctness.has_accuracy(trial, Cell("spirals", "train")) is counts


@pytest.mark.parametrize(
    ("old", "new", "rung"),
    [("", "", None), ("@ net[", "@ 1.001 @ net[", 3), ("last = likely / len(y)", "last = likely / 31", 5)],
)
def test_two_recipes_are_compared(project, tmp_path, monkeypatch, old, new, rung):
    monkeypatch.chdir(tmp_path)
    new = new.replace("@ 1.001 @", "* 1.001 @")
    old = old and old.replace("@ net[", "@ net[")
    other = tmp_path / "other"
    yours.write(other, {**yours.example(), RECIPE: yours.NUMPY})
    if old:
        change(other, RECIPE, old, new)
    arms = [inspected(folder) for folder in (other, project)]
    settings = Settings(device="cpu", threads=1)
    found, doubt = parity.against(*arms, settings, timeout=60)
    first = ladder.first_difference(found)
    assert doubt is None and (first and first.rung) == rung
    assert rung is None or "(compared with numpy)" in first.message
    assert [one.rung for one in found] == [3, 4, 5, 6, 7]
    alone = parity.alone(arms[1], settings, timeout=60)
    assert [(one.rung, one.status) for one in alone] == [(1, "agrees"), (8, "agrees"), (9, "agrees")]


def inspected(folder):
    model = spec.of_recipe(folder / RECIPE, folder)
    result = inspection.inspect(environments.ORACLE, model, timeout=60)
    return parity.arm(*inspection.resolved(model, environments.ORACLE, result))


# the task


def test_an_inspection_says_what_the_task_gives(project):
    found = models.inspect(yours.described(project, "spirals", "numpy"))
    protocol.encode(found)
    assert (found["framework"], found["parameters"], found["output"]) == ("numpy", 387, [32, 3])
    assert found["inputs"] == [{"name": None, "kind": "float", "shape": [32, 2], "high": None, "dtype": None}]
    assert found["target"] == {"name": None, "kind": "int", "shape": [32], "high": 3, "dtype": None}
    assert found["accuracy"] and found["deterministic"] and found["inferred_from"] == TASK


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
    yours.write(tmp_path, yours.example("A model in ONNX"))
    recipe = spec.parse("recipes/speech/numpy.py", tmp_path)
    found = models.inspect(recipe.as_request())
    assert found["summary"].startswith("NumPy: no parameters; inputs 32x20x8 from example_inputs()")
    assert found["output"] == [32, 8]


def test_the_scales_have_their_numbers_of_steps(project):
    counts = {}
    for scale in ("smoke", "study", "gate", "quick", "paper"):
        file = TaskFile(yours.described(project, "spirals", "numpy"))
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
    (project / TASK).write_text(
        "import numpy as np\ndef samples(part): return np.zeros((70, 2)), np.arange(70) % 3"
    )
    file = TaskFile(yours.described(project, "spirals", "numpy"))
    task = file.task("gate")
    assert (task.batch, task.epochs, task.train) == (32, 25, 70)
    assert len(file.rows(task, "train", "gate")) == 50 and len(file.rows(task, "infer", "gate")) == 50
    assert len(file.rows(task, "test", "gate")) == 2


def test_scales_of_the_task_come_first(project):
    with (project / TASK).open("a") as file:
        file.write("\nSCALES = {'smoke': {'EPOCHS': 2, 'TRAIN': 64, 'LEARNING_RATE': 0.25}}\n")
    task = TaskFile(yours.described(project, "spirals", "numpy")).task("smoke")
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
        TaskFile(yours.described(project, "spirals", "numpy")).task("paper")


def test_without_labels_there_is_no_accuracy(project):
    change(project, TASK, "1), arm", "1), arm.astype(float)")
    file = TaskFile(yours.described(project, "spirals", "numpy"))
    assert file.task("smoke").data is None and not file.counts()


def test_answers_are_counted_by_the_largest_output_or_by_the_task(project):
    file = TaskFile(yours.described(project, "spirals", "numpy"))
    output, target = numpy.eye(3)[[0, 1, 2, 2]], numpy.array([0, 1, 2, 0])
    assert file.correct(output, target) == 3
    assert (
        file.correct(output.reshape(2, 2, 3), target.reshape(2, 2)) == 1.5
    )  # of two samples with two labels each
    with pytest.raises(SpecError, match=r"define correct\(output, target\). The output has shape \(4, 1\)"):
        file.correct(output[:, :1], target)
    with (project / TASK).open("a") as content:
        content.write("\ndef correct(output, target): return len(target) - 1\n")
    del sys.modules["stele_user_tasks_spirals"]
    assert TaskFile(yours.described(project, "spirals", "numpy")).correct(output, target) == 3


def test_parity_switches_dropout_off_whatever_its_form(project):
    for text, expected in (("()", (0.0,)), ("(0.5, 0.2)", (0.0, 0.0)), ("0.5", (0.0,))):
        (project / TASK).write_text(yours.example()[TASK] + f"\nDROPOUT = {text}\n")
        sys.modules.pop("stele_user_tasks_spirals", None)
        found = subjects.find(
            frameworks.load("numpy"),
            "",
            "smoke",
            0,
            "float32",
            None,
            yours.described(project, "spirals", "numpy"),
        )
        assert found.without_dropout().task.dropout == expected


# errors


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


# derived recipes, without a framework


def derive(project, content, weights):
    """Return the names that ``naming`` derives for a framework with two parameters."""
    yours.write(project, {RECIPE: "def network(): ...\n" + content})
    held = {"a.kernel": numpy.arange(6.0).reshape(2, 3), "a.bias": numpy.arange(3.0)}
    base = SimpleNamespace(
        stored=dict,
        load=lambda net, arrays: {**net, **arrays},
        gradients=lambda net, task: lambda: (0.0, net),
    )
    source = recipe_files.find(yours.described(project, "spirals", "numpy"))
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
    yours.write(project, {f"recipes/spirals/{name}.py": content})
    with pytest.raises(SpecError, match=message):
        recipe_files.recipe(yours.described(project, "spirals", name))


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
    yours.write(project, {"recipes/spirals/torch.py": content})
    source = recipe_files.find(yours.described(project, "spirals", "torch"))
    with pytest.raises(SpecError, match=message):
        recipe_files.build(source, None)
