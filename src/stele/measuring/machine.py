"""Facts of this machine that a number depends on. What is unknown is None."""

import hashlib
import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

GPU_FACTS = ("name", "uuid", "driver_version", "memory.total", "clocks.max.sm", "power.limit")


def facts() -> dict[str, Any]:
    """Processor, memory (bytes), kernel, frequency governor, GPUs, and how busy the machine is now."""
    return {
        "name": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "processor": processor(),
        "processors": os.cpu_count(),
        "memory": memory(),
        "governor": text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "huge_pages": text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "gpus": gpus(),
    }


def processor() -> str | None:
    """The processor's name as it gives it itself."""
    for line in (text("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or None


def memory() -> int | None:
    """Main memory, in bytes."""
    for line in (text("/proc/meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def gpus() -> list[dict[str, str]]:
    """The NVIDIA GPUs as nvidia-smi describes them; none where there is no nvidia-smi."""
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


def text(path: str) -> str | None:
    """A file's content without its last newline, or None where it cannot be read."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def title(known: dict[str, Any]) -> str:
    """What a machine is called: its processor, and a hash of all that must be equal."""
    same = fingerprint(known)
    words = re.sub(r"[^a-z0-9]+", "-", str(same["processor"] or "machine").lower()).strip("-")
    return f"{words}-{hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:8]}"


def fingerprint(known: dict[str, Any]) -> dict[str, Any]:
    """Of ``facts()`` those that must be equal for two numbers to be compared. What changes by the minute is none."""
    kept = ("system", "architecture", "processor", "processors", "memory", "governor", "huge_pages")
    gpus = [{fact: gpu.get(fact) for fact in GPU_FACTS} for gpu in known.get("gpus", [])]
    return {**{fact: known.get(fact) for fact in kept}, "gpus": gpus}
