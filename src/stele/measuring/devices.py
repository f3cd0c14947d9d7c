"""NVIDIA devices: those that are used, and the variables that CUDA's libraries read once, when they are loaded."""

import os
from itertools import takewhile
from pathlib import Path

NAMES = ("cpu", "cuda")
# in /dev; the second is that of the Windows Subsystem for Linux
LINKS = ("nvidia[0-9]*", "dxg")
# values of CUDA_VISIBLE_DEVICES that hide all devices
NONE = ("", "-1")
# after which the clocks of a GPU have settled; it is also measured for so long
WARM_SECONDS = 2.0


def first(root: Path = Path("/dev")) -> str | None:
    """Return the number or the id of the first device that CUDA_VISIBLE_DEVICES allows; None without a device."""
    return next(iter(allowed(1, root)), None)


def allowed(count: int, root: Path = Path("/dev")) -> list[str]:
    """Return the numbers or the ids of the devices that CUDA_VISIBLE_DEVICES allows, the first ``count`` at most."""
    if not any(path for link in LINKS for path in root.glob(link)):
        return []
    text = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(count))))
    names = (name.strip() for name in text.split(","))
    return list(takewhile(lambda name: name not in NONE, names))[:count]


def default() -> str:
    """Return "cuda" if there is an NVIDIA device that may be used, else "cpu"."""
    return "cpu" if first() is None else "cuda"


def variables(device: str, precision: str, count: int = 1) -> dict[str, str]:
    """Return the environment variables of a worker.

    It sees ``count`` devices, or none on a CPU. CUDA numbers devices as nvidia-smi does, by their place on the bus.
    Without TF32, libraries are told so: the switches of some frameworks do not reach all of them. In precision
    "default", nothing is said.
    """
    if device == "cpu":
        return {"CUDA_VISIBLE_DEVICES": "-1"}
    exact = {} if precision in ("tf32", "default") else {"NVIDIA_TF32_OVERRIDE": "0"}
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(allowed(count)) or "0",
        **exact,
    }
