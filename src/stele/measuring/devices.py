"""NVIDIA devices: the one that is used, and the variables that CUDA's libraries read once, when they are loaded."""

import os
from pathlib import Path

NAMES = ("cpu", "cuda")
LINKS = ("nvidia[0-9]*", "dxg")  # in /dev; the second is that of the Windows Subsystem for Linux
NONE = ("", "-1")  # values of CUDA_VISIBLE_DEVICES that hide all devices
WARM_SECONDS = 2.0  # after which the clocks of a GPU have settled; it is also measured for so long


def first(root: Path = Path("/dev")) -> str | None:
    """Return the number or the id of the first device that CUDA_VISIBLE_DEVICES allows; None without a device."""
    if not any(path for link in LINKS for path in root.glob(link)):
        return None
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0].strip()
    return None if allowed in NONE else allowed


def default() -> str:
    """Return "cuda" if there is an NVIDIA device that may be used, else "cpu"."""
    return "cpu" if first() is None else "cuda"


def variables(device: str, precision: str) -> dict[str, str]:
    """Return the environment variables of a worker.

    It sees one device, or none on a CPU. CUDA numbers devices as nvidia-smi does, by their place on the bus. Libraries
    use TF32 only in that precision; the switches of some frameworks do not reach all libraries.
    """
    if device == "cpu":
        return {"CUDA_VISIBLE_DEVICES": "-1"}
    exact = {} if precision == "tf32" else {"NVIDIA_TF32_OVERRIDE": "0"}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": first() or "0", **exact}
