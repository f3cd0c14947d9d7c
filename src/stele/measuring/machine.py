"""Facts about this machine that a measurement depends on. An unknown fact is None."""

import hashlib
import json
import os
import platform
import re
from pathlib import Path
from typing import Annotated

import msgspec
import psutil

from stele.measuring import nvml
from stele.schema import about


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine."""

    name: Annotated[str | None, about("host name; null in a baseline")] = None
    system: Annotated[str | None, about("operating system and kernel release")] = None
    architecture: Annotated[str | None, about("such as `x86_64`")] = None
    processor: Annotated[str | None, about("name that the processor reports")] = None
    processors: Annotated[int | None, about("number of processors")] = None
    memory: Annotated[int | None, about("main memory", "byte")] = None
    governor: Annotated[str | None, about("frequency governor")] = None
    huge_pages: Annotated[str | None, about("setting of transparent huge pages")] = None
    load: Annotated[float | None, about("load average of the last minute; null in a baseline")] = None
    gpus: Annotated[
        tuple[dict[str, str], ...], about("facts of NVML, under the names of nvidia-smi; empty without a GPU")
    ] = ()


def facts() -> Machine:
    """Return what this machine is. Its memory is in bytes, its load the mean of the last minute."""
    return Machine(
        name=platform.node(),
        system=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        processor=processor(),
        processors=os.cpu_count(),
        memory=psutil.virtual_memory().total,
        governor=read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        huge_pages=read_text("/sys/kernel/mm/transparent_hugepage/enabled"),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        gpus=tuple(nvml.gpus()),
    )


def processor() -> str | None:
    """Return the name that the processor reports."""
    for line in (read_text("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or None


def available_memory() -> int:
    """Return the bytes that new processes can use without swapping, within the limit of a container (cgroup v2)."""
    available = psutil.virtual_memory().available
    limit, used = (read_text(f"/sys/fs/cgroup/memory.{name}") or "" for name in ("max", "current"))
    return min(available, int(limit) - int(used)) if limit.isdecimal() and used.isdecimal() else available


def peak_memory(pid: int) -> int | None:
    """Return the peak resident memory of a process in bytes; None if the system does not say (proc_pid_status(5))."""
    lines = (read_text(f"/proc/{pid}/status") or "").splitlines()
    peaks = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(peaks[0]) * 1024 if peaks else None


def read_text(path: str) -> str | None:
    """Return the content of a file, stripped, or None if it cannot be read."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


VARYING = ("name", "load")  # facts that differ between measurements on one machine


def name_of(facts: Machine) -> str:
    """Return the name of a machine: its processor, and a hash of its fingerprint."""
    values = msgspec.to_builtins(facts)
    identity = {name: value for name, value in values.items() if name not in VARYING}
    processor = re.sub(r"[^a-z0-9]+", "-", (facts.processor or "machine").lower()).strip("-")
    return f"{processor}-{hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:8]}"


def fingerprint(facts: Machine) -> Machine:
    """Return the facts that must be equal to compare two measurements: without the host name and the load."""
    return msgspec.structs.replace(facts, **dict.fromkeys(VARYING))
