"""Which devices a worker sees."""

from types import SimpleNamespace

import pytest

from checks import gpu
from stele.measuring import devices
from stele.measuring.settings import Settings


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A /dev with one NVIDIA device."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "nvidia3").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("allowed", "first"), [(None, "0"), ("2,1", "2"), ("GPU-1a2b", "GPU-1a2b"), ("", None), ("-1", None)]
)
def test_the_first_device_that_may_be_used(root, monkeypatch, allowed, first):
    if allowed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    assert devices.first(root) == first


def test_without_a_device_file_there_is_no_device(tmp_path):
    (tmp_path / "nvidiactl").touch()
    assert devices.first(tmp_path) is None


@pytest.mark.parametrize(("first", "default"), [("1", "cuda"), (None, "cpu")])
def test_the_default_device(monkeypatch, first, default):
    monkeypatch.setattr(devices, "first", lambda: first)
    assert devices.default() == default


def test_a_worker_on_a_gpu_sees_one_device_and_tf32_only_in_that_precision(monkeypatch):
    monkeypatch.setattr(devices, "allowed", lambda count: ["3", "4"][:count])
    for precision in ("fp32", "bf16", "tf32"):
        variables = Settings(device="cuda", precision=precision).variables()
        assert variables["CUDA_VISIBLE_DEVICES"] == "3" and variables["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
        assert variables.get("NVIDIA_TF32_OVERRIDE") == (None if precision == "tf32" else "0")


def test_a_worker_for_several_gpus_sees_as_many(root, monkeypatch):
    assert devices.allowed(2, root) == ["0", "1"]
    for text, names in (("2,1,0", ["2", "1"]), ("GPU-1a2b", ["GPU-1a2b"]), ("3,-1,2", ["3"]), ("", [])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", text)
        assert devices.allowed(2, root) == names
    monkeypatch.setattr(devices, "allowed", lambda count: ["3", "4"][:count])
    assert Settings(device="cuda", devices=2).variables()["CUDA_VISIBLE_DEVICES"] == "3,4"


def test_an_environment_of_the_processor_is_left_out_where_there_is_one_for_the_gpu(monkeypatch):
    monkeypatch.setattr(gpu.environments, "state", lambda environment: SimpleNamespace(status="ready"))
    assert "jax-cuda" in gpu.ready("cuda") and "jax" not in gpu.ready("cuda")
    assert "jax" in gpu.ready("cpu")


def test_a_worker_on_a_cpu_sees_no_device():
    variables = Settings(device="cpu").variables()
    assert variables["CUDA_VISIBLE_DEVICES"] == "-1" and "NVIDIA_TF32_OVERRIDE" not in variables
