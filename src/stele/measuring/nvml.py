"""NVIDIA GPUs as NVML describes them, in the words of nvidia-smi. What NVML cannot say is left out, or None."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pynvml

from stele.measuring import devices

Reading = TypeVar("Reading")
Facts = Mapping[str, Callable[[Any], str]]

# what does not change while a GPU is used
DESCRIPTION: Facts = {
    "name": lambda gpu: str(pynvml.nvmlDeviceGetName(gpu)),
    "uuid": lambda gpu: str(pynvml.nvmlDeviceGetUUID(gpu)),
    "driver_version": lambda gpu: str(pynvml.nvmlSystemGetDriverVersion()),
    "memory.total": lambda gpu: f"{pynvml.nvmlDeviceGetMemoryInfo(gpu).total // 2**20} MiB",
    "clocks.max.sm": lambda gpu: f"{pynvml.nvmlDeviceGetMaxClockInfo(gpu, pynvml.NVML_CLOCK_SM)} MHz",
    "power.limit": lambda gpu: f"{pynvml.nvmlDeviceGetPowerManagementLimit(gpu) / 1000:.2f} W",
}
# MHz, °C, W, and a set of bits in hexadecimal
STATE: Facts = {
    "clocks.sm": lambda gpu: str(pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM)),
    "temperature.gpu": lambda gpu: str(pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU)),
    "power.draw": lambda gpu: f"{pynvml.nvmlDeviceGetPowerUsage(gpu) / 1000:.2f}",
    "clocks_throttle_reasons.active": lambda gpu: f"{pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu):#018x}",
}


def ask(question: Callable[[Any], Reading], device: str | None = None) -> Reading | None:
    """Return question(handle of a device), by default of the one that is used; None if NVML cannot say.

    ``device`` is a number or an id, as CUDA_VISIBLE_DEVICES names it.
    """
    name = device or devices.first() or "0"
    try:
        pynvml.nvmlInit()
        by_number = name.isdecimal()
        return question(
            pynvml.nvmlDeviceGetHandleByIndex(int(name)) if by_number else pynvml.nvmlDeviceGetHandleByUUID(name)
        )
    except pynvml.NVMLError:
        return None


def describe(gpu: Any, facts: Facts) -> dict[str, str]:
    """Return the facts that NVML knows of a GPU."""
    values = {}
    for name, read in facts.items():
        with contextlib.suppress(pynvml.NVMLError):
            values[name] = read(gpu)
    return values


def gpus() -> list[dict[str, str]]:
    """Return the descriptions of all GPUs, in the order of their numbers; an empty list without a driver."""
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return []
    return [describe(handle, DESCRIPTION) for handle in handles]


def state() -> dict[str, str] | None:
    """Return clock, temperature, power and throttle reasons of the GPU."""
    return ask(lambda gpu: describe(gpu, STATE))


def energy() -> int | None:
    """Return the energy of the GPU since its driver was loaded, in millijoules."""
    return ask(lambda gpu: int(pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)))


def memory_of(pid: int) -> int | None:
    """Return the bytes of the device that a process holds, its context and caches included.

    None if NVML does not list it: in a container, NVML may number processes as the machine outside does.
    """

    def used(gpu: Any) -> int | None:
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)
        return next((process.usedGpuMemory for process in processes if process.pid == pid), None)

    return ask(used)


def bus_id(device: str) -> str | None:
    """Return the place of a device on the bus, as /sys/bus/pci/devices names it: ``0000:17:00.0``."""
    place = ask(lambda gpu: str(pynvml.nvmlDeviceGetPciInfo(gpu).busId), device)
    # NVML has eight digits of the domain, and the system four
    return None if place is None else place.lower()[-12:]
