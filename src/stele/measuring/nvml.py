"""What NVML says of the GPU that is used. It needs the package nvidia-ml-py."""

from collections.abc import Callable
from typing import Any, TypeVar

from stele.measuring import devices

Answer = TypeVar("Answer")


def ask(question: Callable[[Any, Any], Answer]) -> Answer | None:
    """Return question(pynvml, handle of the device); None without the package, or if NVML cannot say."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return question(pynvml, handle(pynvml, devices.first() or "0"))
    except pynvml.NVMLError:
        return None


def handle(nvml: Any, device: str) -> Any:
    """Return NVML's handle of a device, by its number or its id."""
    if device.isdecimal():
        return nvml.nvmlDeviceGetHandleByIndex(int(device))
    return nvml.nvmlDeviceGetHandleByUUID(device)


def energy() -> int | None:
    """Return the energy of the GPU since its driver was loaded, in millijoules."""
    return ask(lambda nvml, gpu: int(nvml.nvmlDeviceGetTotalEnergyConsumption(gpu)))


def memory_of(pid: int) -> int | None:
    """Return the bytes of the device that a process holds, its context and caches included.

    None if NVML does not list it: in a container, NVML may number processes as the machine outside does.
    """

    def used(nvml: Any, gpu: Any) -> int | None:
        listed = nvml.nvmlDeviceGetComputeRunningProcesses(gpu)
        return next((one.usedGpuMemory for one in listed if one.pid == pid), None)

    return ask(used)
