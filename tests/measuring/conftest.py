from types import SimpleNamespace

import pynvml
import pytest

from stele.measuring import nvml as nvml_of_stele


@pytest.fixture
def nvml(monkeypatch):
    """A pynvml with two GPUs, 0 and 1, whose ids are GPU-0 and GPU-1. The handle of a GPU is its number."""

    def handle_of(identity):
        if identity not in ("GPU-0", "GPU-1"):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return int(identity.removeprefix("GPU-"))

    counts = iter([5000, 7500])
    module = SimpleNamespace(
        NVMLError=pynvml.NVMLError,
        NVML_CLOCK_SM=pynvml.NVML_CLOCK_SM,
        NVML_TEMPERATURE_GPU=pynvml.NVML_TEMPERATURE_GPU,
        nvmlInit=lambda: None,
        nvmlSystemGetDriverVersion=lambda: "580.65.06",
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetHandleByUUID=handle_of,
        nvmlDeviceGetName=lambda handle: "NVIDIA H200",
        nvmlDeviceGetUUID=lambda handle: f"GPU-{handle}",
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=143771 * 2**20 + 1),
        nvmlDeviceGetMaxClockInfo=lambda handle, kind: 1980,
        nvmlDeviceGetPowerManagementLimit=lambda handle: 700_000,
        nvmlDeviceGetClockInfo=lambda handle, kind: 1980 - handle,
        nvmlDeviceGetTemperature=lambda handle, kind: 45,
        nvmlDeviceGetPowerUsage=lambda handle: 70_104,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x40,
        nvmlDeviceGetPciInfo=lambda handle: SimpleNamespace(busId=f"0000000{handle}:C7:00.0"),
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: next(counts),
    )
    monkeypatch.setattr(nvml_of_stele, "pynvml", module)
    return module
