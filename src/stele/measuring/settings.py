"""How a framework is to compute: the defaults of every option stand here and nowhere else."""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from stele.errors import SteleError

DEVICES = ("cpu", "cuda")
PRECISIONS = ("fp32", "tf32", "bf16")
# of the C library's allocator. "steady" keeps what it was given and asks for huge pages: on a quiet machine medians of
# launches then spread by 1 %, not 6 %. It hides what a framework asks of the allocator; "plain" shows it
MALLOC = {
    "plain": {},
    "steady": {
        "MALLOC_MMAP_THRESHOLD_": str(2**32),
        "MALLOC_TRIM_THRESHOLD_": str(2**32),
        "MALLOC_TOP_PAD_": str(2**28),
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    },
}


def default_device() -> str:
    """cuda where the machine has an NVIDIA device, else cpu."""
    return "cuda" if Path("/dev/nvidia0").exists() else "cpu"


def default_threads() -> int:
    """All processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Settings:
    """What every framework is set to before it computes; read back and recorded as a Run's flags."""

    device: str = field(default_factory=default_device)
    precision: str = "fp32"  # fp32: TF32 off; tf32: on; bf16: mixed precision, parameters in float32
    threads: int = field(default_factory=default_threads)
    deterministic: bool = False  # deterministic kernels, autotuning off
    seed: int = 0
    malloc: str = "plain"

    def __post_init__(self) -> None:
        if self.precision == "tf32" and self.device == "cpu":
            raise SteleError(
                "Precision tf32 needs a GPU: no CPU has TF32. Add --device cuda, or leave it out."
            )
        if self.threads < 1:
            raise SteleError(f"--threads {self.threads}: at least one thread is needed.")
        if not 0 <= self.seed < 2**32:
            raise SteleError(f"--seed {self.seed}: a seed lies between 0 and 2**32 - 1.")

    def as_request(self) -> dict[str, Any]:
        """As the worker's ``configure`` takes them."""
        fields = {name: value for name, value in asdict(self).items() if name != "malloc"}
        return {**fields, "autotune": not self.deterministic}

    def variables(self) -> dict[str, str]:
        """Environment variables that numerical libraries read only once, when they are loaded."""
        libraries = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
        threads = {f"{library}_NUM_THREADS": str(self.threads) for library in libraries}
        return {**threads, **MALLOC[self.malloc], "PYTHONHASHSEED": "0"}

    def summary(self) -> str:
        """For people: ``cpu, 2 threads, fp32, seed 0``."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        parts = [self.device, threads, self.precision, f"seed {self.seed}"]
        return ", ".join([*parts, "deterministic"] if self.deterministic else parts)
