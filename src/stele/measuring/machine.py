"""Facts about this machine that a measurement depends on. An unknown fact is None."""

import hashlib
import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import psutil

GPU_FACTS = ("name", "uuid", "driver_version", "memory.total", "clocks.max.sm", "power.limit")


def facts() -> dict[str, Any]:
    """Return the processor, memory (bytes), kernel, frequency governor, GPUs and current load of this machine."""
    return {
        "name": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "processor": processor(),
        "processors": os.cpu_count(),
        "memory": psutil.virtual_memory().total,
        "governor": read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "huge_pages": read_text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "gpus": gpus(),
    }


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


def gpus() -> list[dict[str, str]]:
    """Return the NVIDIA GPUs as nvidia-smi describes them; an empty list without nvidia-smi."""
    query = ["nvidia-smi", f"--query-gpu={','.join(GPU_FACTS)}", "--format=csv,noheader"]
    try:
        lines = subprocess.run(
            query, capture_output=True, text=True, timeout=20, check=True
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return []
    return [
        dict(zip(GPU_FACTS, (value.strip() for value in line.split(",")), strict=False)) for line in lines
    ]


def read_text(path: str) -> str | None:
    """Return the content of a file, stripped, or None if it cannot be read."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def name_of(facts: dict[str, Any]) -> str:
    """Return the name of a machine: its processor, and a hash of its fingerprint."""
    identity = fingerprint(facts)
    processor = re.sub(r"[^a-z0-9]+", "-", str(identity["processor"] or "machine").lower()).strip("-")
    return f"{processor}-{hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:8]}"


def fingerprint(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the ``facts()`` that must be equal to compare two measurements; the load, which changes, is left out."""
    constant = ("system", "architecture", "processor", "processors", "memory", "governor", "huge_pages")
    gpus = [{fact: gpu.get(fact) for fact in GPU_FACTS} for gpu in facts.get("gpus", [])]
    return {**{fact: facts.get(fact) for fact in constant}, "gpus": gpus}
