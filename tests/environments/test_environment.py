"""Which cells an environment supports, and the reason if it does not support one."""

from stele import environments
from stele.environments.environment import Environment, Support


def test_an_environment_says_why_it_has_no_gpu():
    reason = environments.load("chainer").why_absent("cnn", "train", device="cuda", precision="fp32")
    assert reason.startswith("Chainer supports only cpu here, not cuda: ") and "CuPy 7" in reason
    plain = Environment("x", "X", "numpy", support=Support(devices=("cpu",)))
    assert plain.why_absent("cnn", "train", device="cuda", precision="fp32") == "X supports only cpu here, not cuda"


def test_an_environment_without_time_to_accuracy_still_trains():
    where = {"device": "cpu", "precision": "fp32"}
    for name in ("r-keras", "knet"):
        environment = environments.load(name)
        assert environment.why_absent("cnn", "train", **where) is None
        assert "does not time epochs" in environment.why_absent("cnn", "time-to-accuracy", **where)
    infers = Environment(name="x", label="X", framework="x", support=Support(phases=("infer",)))
    assert infers.why_absent("cnn", "time-to-accuracy", **where) == "X has infer only"


def test_an_unsupported_cell_has_a_reason():
    support = Support(devices=("cpu",), absent={"cnn train": "no training"})
    environment = Environment(name="x", label="X", framework="x", support=support)
    on_cpu = {"device": "cpu", "precision": "fp32"}
    assert environment.why_absent("cnn", "train", **on_cpu) == "no training"
    assert environment.why_absent("cnn", "infer", **on_cpu) is None
    assert (
        environment.why_absent("cnn", "infer", device="cuda", precision="fp32") == "X supports only cpu here, not cuda"
    )
