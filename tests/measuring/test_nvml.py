"""What the library of NVIDIA says about a GPU."""

from types import SimpleNamespace

import pytest

from stele.fleet import slots
from stele.measuring import devices
from stele.measuring import nvml as nvml_of_stele


def test_without_a_driver_there_are_no_gpus_and_nothing_is_known():
    if nvml_of_stele.gpus():
        pytest.skip("this machine has a GPU")
    assert nvml_of_stele.state() is nvml_of_stele.energy() is nvml_of_stele.bus_id("0") is None


def test_each_gpu_is_described(nvml):
    first, second = nvml_of_stele.gpus()
    assert first == {
        "name": "NVIDIA H200",
        "uuid": "GPU-0",
        "driver_version": "580.65.06",
        "memory.total": "143771 MiB",
        "clocks.max.sm": "1980 MHz",
        "power.limit": "700.00 W",
    }
    assert second["uuid"] == "GPU-1"


def test_what_a_gpu_cannot_say_is_left_out(nvml):
    def fail(handle):
        raise nvml.NVMLError(3)

    nvml.nvmlDeviceGetPowerManagementLimit = fail
    assert "power.limit" not in nvml_of_stele.gpus()[0] and "name" in nvml_of_stele.gpus()[0]


@pytest.mark.parametrize("device", ["1", "GPU-1"])
def test_the_state_is_that_of_the_visible_gpu(nvml, monkeypatch, device):
    monkeypatch.setattr(devices, "first", lambda: device)
    assert nvml_of_stele.state() == {
        "clocks.sm": "1979",
        "temperature.gpu": "45",
        "power.draw": "70.10",
        "clocks_throttle_reasons.active": "0x0000000000000040",
    }


def test_a_gpu_that_is_not_there_has_no_state(nvml, monkeypatch):
    monkeypatch.setattr(devices, "first", lambda: "GPU-7")
    assert nvml_of_stele.state() is None


def test_the_memory_of_a_process_is_that_of_nvml(nvml):
    nvml.nvmlDeviceGetComputeRunningProcesses = lambda handle: [
        SimpleNamespace(pid=7, usedGpuMemory=2**30),
        SimpleNamespace(pid=8, usedGpuMemory=None),
    ]
    assert [nvml_of_stele.memory_of(pid) for pid in (7, 8, 9)] == [2**30, None, None]


def test_the_numa_node_of_a_gpu_is_that_of_its_place_on_the_bus(nvml, tmp_path, monkeypatch):
    monkeypatch.setattr(slots, "DEVICES", tmp_path)
    for place, node in (("0000:c7:00.0", "3\n"), ("0001:c7:00.0", "-1\n")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "numa_node").write_text(node)
    assert [slots.of_gpu(device) for device in ("0", "GPU-0", "1", "GPU-7")] == [3, 3, None, None]
