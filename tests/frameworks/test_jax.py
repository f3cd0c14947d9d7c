"""Derived recipes in JAX. Run where jax, flax and optax are installed."""

import json

import jax
import numpy
import optax
import pytest

from stele_worker import agreement, frameworks, subjects
from stele_worker.frameworks.jax.images import pool_blocks
from stele_worker.models import inspection
from stele_worker.models.errors import SpecError, UserCodeError
from tests.frameworks import contract
from tests.frameworks.contract import Arm, described

FLAX = ["jax_models:" + name for name in ("Image", "TwoInputs", "Attention")]
SPECS = [*FLAX, "jax_pairs:pair", "jax_pairs:with_loss"]
pytestmark = pytest.mark.filterwarnings("default")  # frameworks warn of each other


@pytest.fixture(scope="module", autouse=True)
def configured():
    contract.configure("jax")


def inspected(spec, **changes):
    found = inspection.inspect(described(spec, **changes))
    json.dumps(found, allow_nan=False)
    return found


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A first layer of an image reads 16 x 16 here."""
    monkeypatch.setattr("stele_worker.models.first_layer.infer.__defaults__", (16, False))


@pytest.mark.parametrize("spec", SPECS)
def test_the_facts_are_of_what_is_stored(spec):
    contract.facts_are_of_what_is_stored("jax", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_the_loss_falls(spec):
    contract.loss_falls("jax", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_two_constructions_give_equal_weights(spec):
    contract.construction_repeats("jax", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_stored_loads_into_a_second_network(spec, tmp_path):
    contract.round_trip_is_exact("jax", spec, tmp_path / "weights.npz")


def test_what_is_stored_loads_in_another_process(tmp_path):
    contract.round_trip_is_exact_in_another_process("jax", "jax_models:TwoInputs", tmp_path / "weights.npz")


@pytest.mark.parametrize("spec", SPECS)
def test_without_dropout_training_repeats(spec):
    def disturb(arm):
        noisy = Arm("jax", spec)
        noisy.losses(1)
        arm.net.randomness = noisy.net.randomness

    contract.without_dropout_training_repeats("jax", spec, disturb)


@pytest.mark.parametrize("spec", ["jax_models:Image", "jax_models:Attention"])
def test_dropout_changes_the_losses_unless_it_is_off(spec):
    assert Arm("jax", spec).losses(2) != Arm("jax", spec, quiet=True).losses(2)


def test_without_dropout_batch_statistics_are_those_of_training():
    arm = Arm("jax", "jax_models:Attention", quiet=True)
    before = arm.stored()
    arm.losses(1)
    name = "batch_stats.BatchNorm_0.mean"
    assert (arm.stored()[name] != before[name]).any()


@pytest.mark.parametrize("spec", ["jax_models:Image", "jax_models:Attention"])
def test_parity_sees_the_running_statistics(spec):
    contract.parity_sees_the_running_statistics("jax", spec, "mean", "var")


@pytest.mark.parametrize("spec", SPECS)
def test_parity_sees_every_update(spec):
    contract.parity_sees_every_update("jax", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_inference_repeats_whatever_the_dropout(spec):
    contract.inference_repeats("jax", spec)


@pytest.mark.parametrize("spec", SPECS)
def test_gradients_are_of_the_trainable_parameters(spec):
    contract.gradients_are_of("jax", spec, Arm("jax", spec).net.names)


@pytest.mark.parametrize("spec", SPECS)
def test_two_inference_calls_agree_in_an_inspection(spec):
    assert inspected(spec)["deterministic"]


@pytest.mark.parametrize("optimizer", [None, "optax:adam"])
def test_five_steps_equal_a_loop_by_hand(optimizer):
    from jax_pairs import apply, init

    arm = Arm("jax", "jax_pairs:pair", optimizer=optimizer)
    x, y = arm.batch
    params = init(jax.random.PRNGKey(3), x)
    chain = optax.adam(1e-3) if optimizer else optax.sgd(0.01)
    slots, expected = chain.init(params), []

    def loss(params):
        return optax.softmax_cross_entropy_with_integer_labels(apply(params, x), y).mean()

    for _ in range(5):
        value, grads = jax.value_and_grad(loss)(params)
        updates, slots = chain.update(grads, slots, params)
        params = optax.apply_updates(params, updates)
        expected.append(float(value))
    assert arm.losses() == pytest.approx(expected, rel=1e-6)


def test_five_steps_of_nnx_equal_a_loop_by_hand():
    from flax import nnx
    from jax_models import TwoInputs

    arm, model = Arm("jax", "jax_models:TwoInputs"), TwoInputs(nnx.Rngs(3))
    x, ids, y = arm.batch
    optimizer, expected = nnx.Optimizer(model, optax.sgd(0.01), wrt=nnx.Param), []
    for _ in range(5):
        value, grads = nnx.value_and_grad(
            lambda model: optax.softmax_cross_entropy_with_integer_labels(model(x, ids), y).mean()
        )(model)
        optimizer.update(model, grads)
        expected.append(float(value))
    assert arm.losses() == pytest.approx(expected, rel=1e-6)


def test_activations_come_in_the_order_of_execution():
    arm = Arm("jax", "jax_models:Image")
    layers = arm.recipe.activations(arm.net, arm.task)(*arm.inputs)
    assert list(layers) == ["zebra", "norm", "drop", "dense"]
    numpy.testing.assert_allclose(arm.fetch(layers["dense"]), arm.infer(), rtol=1e-5)
    arm = Arm("jax", "jax_models:Attention")
    layers = arm.recipe.activations(arm.net, arm.task)(*arm.inputs)
    assert list(layers)[:3] == ["Dense_0", "BatchNorm_0", "Dropout_0"]
    assert list(layers)[-1] == "head"
    arm = Arm("jax", "jax_pairs:pair")
    assert arm.recipe.activations(arm.net, arm.task)(*arm.inputs) == {}


@pytest.mark.parametrize("spec", SPECS)
def test_bfloat16_computes_in_bfloat16_and_answers_in_float32(spec):
    arm, exact = (Arm("jax", spec, dtype=dtype) for dtype in ("bfloat16", "float32"))
    assert arm.infer() == pytest.approx(exact.infer(), abs=0.1)
    assert (arm.infer() != exact.infer()).any()
    losses = arm.losses(20)
    assert losses[-1] < losses[0]


def test_the_inputs_are_those_of_the_first_layer_as_it_is_defined():
    found = inspected("jax_models:Image")
    assert found["inferred_from"] == "the signature and the first layer"
    assert found["inputs"] == [{"name": None, "kind": "float", "shape": [8, 16, 16, 3], "high": None, "dtype": None}]


def test_a_pair_takes_its_inputs_from_its_module():
    found = inspected("jax_pairs:with_loss")
    assert found["inferred_from"] == "example_inputs()"
    assert found["loss"] == "the model's own"
    assert found["target"] == {"name": "labels", "kind": "int", "shape": [6], "high": 3, "dtype": None}
    assert found["parameters"] == 10 * 16 + 16 * 3


def test_inputs_that_cannot_be_inferred_are_asked_for():
    with pytest.raises(SpecError, match="cannot be inferred. Add for example: --input 8x3x64x64"):
        inspected("jax_unknown:pair")


def test_wrong_inputs_are_quoted_with_the_frameworks_message():
    given = [{"name": None, "kind": "float", "shape": [4, 9], "high": None}]
    given.append({"name": None, "kind": "int", "shape": [4, 6], "high": 50})
    with pytest.raises(SpecError, match="--input 4x9 --input int:4x6:50\n"):
        inspected("jax_models:TwoInputs", inputs=given)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (
            "{'logits': y, 'label': 'dog'}",
            r"returns 'dog' of type str in its output \['label'\]. JAX compiles",
        ),
        ("(y, [y, object()])", r"returns <object .* of type object in its output \[1\]\[1\]. JAX compiles"),
    ],
)
def test_what_jax_cannot_compile_is_named_and_the_inputs_are_not_to_blame(tmp_path, output, message):
    text = "import jax\ndef apply(params, y): return {}\nmodel = (lambda key, x: {{'w': x[:1]}}), apply\n"
    (tmp_path / "net.py").write_text(text.format(output))
    given = [{"name": None, "kind": "float", "shape": [4, 9], "high": None}]
    with pytest.raises(SpecError, match="net.py:model " + message) as caught:
        inspected(f"{tmp_path}/net.py:model", inputs=given)
    assert "--input" not in str(caught.value) and "/tmp/jax" not in str(caught.value)


def test_what_the_users_code_raises_is_shown_with_the_users_frames_alone():
    with pytest.raises(UserCodeError, match="jax_models:broken raised KeyError: 'no such width'\n.*jax_models.py"):
        inspected("jax_models:broken")


@pytest.mark.parametrize(("side", "size"), [(4, 2), (5, 2), (9, 4)])
def test_the_gradient_of_a_pool_is_that_of_the_maximum(side, size):
    """Equal pixels share the gradient; what is left over at the edges has none."""
    rng, count = numpy.random.RandomState(0), side // size
    x, factors = rng.randint(3, size=(2, side, side, 3)).astype("float32"), rng.rand(2, count, count, 3)

    def plain(x):
        return x[:, : count * size, : count * size].reshape(2, count, size, count, size, 3).max((2, 4))

    found, expected = (
        jax.grad(lambda x, pool=pool: (pool(x) * factors).sum())(x) for pool in (lambda x: pool_blocks(x, size), plain)
    )
    numpy.testing.assert_allclose(found, expected, rtol=1e-6)


def line_of(comment):
    """Return ``jax_pairs.py:31``, the line of the user's project with this comment."""
    lines = (contract.PROJECT / "jax_pairs.py").read_text().splitlines()
    [number] = [number for number, line in enumerate(lines, 1) if line.endswith("# " + comment)]
    return f"jax_pairs.py:{number}"


@pytest.mark.slow
def test_the_profile_shows_the_operations_of_loops_at_the_users_lines():
    arm = Arm("jax", "jax_pairs:loops")
    step = arm.recipe.inference_step(arm.net, arm.task)

    def run():
        arm.framework.wait(step(*arm.inputs))

    run()
    arm.framework.profile(run)
    found = arm.framework.profile(run)
    product = [calls for name, (_, calls) in found.items() if name.endswith(line_of("the product"))]
    assert 50 in product
    [call] = [name for name in found if name.startswith("call")]
    assert call.startswith(f"call at {line_of('the loop')}: while of ")
    assert found[call][1] == 1
    assert all(seconds >= 0 for seconds, _ in found.values())


@pytest.mark.slow
def test_the_profile_of_a_release_without_a_reader_is_that_of_its_viewer(monkeypatch):
    monkeypatch.setattr(jax.profiler, "ProfileData", None)
    test_the_profile_shows_the_operations_of_loops_at_the_users_lines()


def test_what_another_seed_does_not_change_is_told_from_what_it_changes(tmp_path):
    code = """import jax, numpy
def init(key, x):
    return {"w": numpy.loadtxt("%s") * %s, "scale": numpy.float32(%s), "drawn": jax.random.normal(key, (3,))}
model = init, lambda params, x: x @ params["w"] * params["scale"] + params["drawn"]
"""
    table = tmp_path / "w.csv"
    numpy.savetxt(table, numpy.arange(12.0).reshape(4, 3))
    given = {"inputs": [{"name": None, "kind": "float", "shape": [5, 4], "high": None}]}
    given["weights"] = str(tmp_path / "w.npz")

    def own(name, factor, seed):
        (tmp_path / f"{name}.py").write_text(code % (table, factor, factor))
        model = described(f"{tmp_path / name}.py:model", **given)
        subject = subjects.find(frameworks.load("jax"), None, "paper", seed, "float32", model=model)
        return agreement.check(frameworks.load("jax"), subject, "infer", own=True)

    numpy.savez(tmp_path / "w.npz", w=numpy.arange(12.0).reshape(4, 3), scale=1.0, drawn=numpy.zeros(3))
    assert list(own("before", 1, 3)["own"]) == ["drawn"]
    assert own("before", 1, 4)["equal"] == ["scale", "w"]
    assert set(own("after", 1.05, 3)["own"]) == {"drawn", "scale", "w"}


PAIR = """import random
def init(key, x):
    return {{"w": x[:4].T}}
def apply(params, x):
    return x @ params["w"] + {0}
model = init, apply
"""


@pytest.mark.parametrize("constant", ["random.random()", "id(object()) % 1000003 / 1000003"])
def test_a_constant_that_each_process_chooses_is_a_change_between_processes(tmp_path, constant):
    """The calls of one process agree: ``jit`` has made it a constant."""
    (tmp_path / "net.py").write_text(PAIR.format(constant))
    found = contract.change_between_processes("jax", f"{tmp_path}/net.py:model", tmp_path, [5, 4])
    assert found is not None and found.startswith("logits: relative error")


def test_a_constant_that_is_the_same_in_each_process_is_no_change_between_them(tmp_path):
    (tmp_path / "net.py").write_text(PAIR.format("random.Random(3).random()"))
    assert contract.change_between_processes("jax", f"{tmp_path}/net.py:model", tmp_path, [5, 4]) is None


def test_nothing_is_left_in_the_project():
    contract.nothing_is_left_in_the_project()


def test_a_users_model_runs_with_the_flags_of_the_user():
    flags = contract.flags_of_a_users_model("jax", XLA_FLAGS="--xla_cpu_enable_fast_math=false", JAX_ENABLE_X64="1")
    assert flags["xla_flags"] == "--xla_cpu_enable_fast_math=false"
    assert flags["matmul_precision"] is None
    assert flags["x64"] is True


def test_all_outputs_are_computed_and_compared():
    names, shapes = ["1", "2.boxes", "2.spectrum"], [(6, 3), (6, 3), (6, 3, 2)]
    contract.all_outputs_are_returned("jax", "jax_pairs:several", names, shapes)


def test_an_output_beside_the_first_is_no_dead_code():
    arm = Arm("jax", "jax_pairs:several")
    text = jax.jit(arm.recipe.inference_step(arm.net, arm.task)).lower(*arm.inputs).compile().as_text()
    assert "tanh" in text and "fft" in text


@pytest.mark.parametrize(("spec", "flag"), [("jax_pairs:told", "train"), ("jax_models:Told", "deterministic")])
def test_a_model_is_told_whether_it_trains(spec, flag):
    contract.training_is_told("jax", spec, flag)


def test_a_rate_that_is_no_dropout_stays():
    assert Arm("jax", "jax_models:Scaled", quiet=True).losses(3) == Arm("jax", "jax_models:Scaled").losses(3)
    assert len(set(Arm("jax", "jax_models:Scaled", quiet=True).losses(3))) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": [4, 7]}, r"input 1 has shape \(4, 8\), not \(4, 7\)"),
        ({"dtype": "float64"}, "input 1 has dtype float32, not float64"),
        ({"name": "x"}, "x is missing"),
    ],
)
def test_other_inputs_than_those_of_the_inspection_are_not_replaced(changes, message, monkeypatch):
    from jax_models import Scaled

    monkeypatch.setattr(Scaled, "example_inputs", lambda self: jax.numpy.arange(32.0).reshape(4, 8))
    found = inspected("jax_models:Scaled")
    assert found["examples"] == "model"
    facts = {name: found[name] for name in ("inputs", "target", "examples")}
    Arm("jax", "jax_models:Scaled", **facts)
    with pytest.raises(SpecError, match=message):
        Arm("jax", "jax_models:Scaled", **dict(facts, inputs=[dict(found["inputs"][0], **changes)]))


def test_inputs_whose_values_are_gone_are_not_drawn(monkeypatch):
    found = inspected("jax_models:Scaled")
    facts = {name: found[name] for name in ("inputs", "target")}
    with pytest.raises(SpecError, match="the numbers of each array are equal now"):
        Arm("jax", "jax_models:Scaled", examples="model", **facts)
