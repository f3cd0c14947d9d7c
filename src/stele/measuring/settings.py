"""The settings of a framework. The defaults of a command are in the dataclass of its options."""

import os
from dataclasses import asdict, dataclass, field
from typing import Annotated

from stele.errors import SteleError
from stele.measuring import devices, processors
from stele.schema import about
from stele.text import unknown_message

DEVICES = devices.NAMES
SEEDS = range(2**32)  # of numpy.random.RandomState
PRECISIONS = ("fp32", "tf32", "bf16", "default")
THREADS = "OMP_NUM_THREADS"
SCALINGS = ("weak", "strong")
OF_DEVICES = ("devices", "scaling")
# settings of the allocator of the C library. "steady" keeps freed memory and requests huge pages: on a quiet machine
# the medians of launches then spread by 1 %, not 6 %. It hides what a framework's allocations cost; "plain" shows it.
# "mmap" is for the peak memory: what has 128 KiB or more is mapped alone, and returned when it is freed. Otherwise the
# C library learns from what is freed how much it keeps, so the peak of several threads depends on chance
MALLOC = {
    "plain": {},
    "mmap": {"MALLOC_MMAP_THRESHOLD_": str(2**17)},
    "steady": {
        "MALLOC_MMAP_THRESHOLD_": str(2**32),
        "MALLOC_TRIM_THRESHOLD_": str(2**32),
        "MALLOC_TOP_PAD_": str(2**28),
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    },
}


@dataclass(frozen=True)
class Settings:
    """The settings that are requested of a framework before it computes.

    Their read-back values are the flags of a Run.
    """

    device: Annotated[str, about("`cpu` or `cuda`")] = field(default_factory=devices.default)
    precision: Annotated[
        str,
        about(
            "`fp32`: TF32 off; `tf32`: on; `bf16`: mixed precision, parameters in float32; `default`: the "
            "framework's own"
        ),
    ] = "fp32"
    threads: Annotated[int, about("processors that the framework may use; of each device, if there are several")] = (
        field(default_factory=processors.count)
    )
    deterministic: Annotated[bool, about("whether only deterministic kernels are allowed, without autotuning")] = False
    seed: Annotated[int, about("seed of weights, batch order and dropout")] = 0
    malloc: Annotated[str, about("allocator profile of the C library: `plain`, `mmap` or `steady`")] = "plain"
    devices: Annotated[int, about("how many devices divide each batch")] = 1
    scaling: Annotated[
        str, about("of several devices: `weak`, the batch grows with the devices, or `strong`, it is divided")
    ] = "weak"

    def __post_init__(self) -> None:
        for option, value, choices in (
            ("device", self.device, DEVICES),
            ("precision", self.precision, PRECISIONS),
            ("scaling", self.scaling, SCALINGS),
            ("malloc", self.malloc, MALLOC),
        ):
            if value not in choices:
                raise SteleError(unknown_message("value", value, choices, of=f"for --{option}"))
        if self.precision == "tf32" and self.device == "cpu":
            raise SteleError("Precision tf32 needs a GPU: no CPU has TF32. Add --device cuda, or omit --precision.")
        if self.threads < 1:
            raise SteleError(f"--threads {self.threads}: at least one thread is needed.")
        if self.devices < 1:
            raise SteleError(f"--devices {self.devices}: at least one device is needed.")
        if self.seed not in SEEDS:
            raise SteleError(f"--seed {self.seed}: the seed must be between 0 and {SEEDS[-1]}.")

    @property
    def arithmetic(self) -> str:
        """Return the precision whose rounding is expected: on a GPU, a framework's default may be TF32."""
        if self.precision != "default":
            return self.precision
        return "fp32" if self.device == "cpu" else "tf32"

    @property
    def processors(self) -> int:
        """Return how many processors the threads of all devices use on a CPU."""
        return self.threads * self.devices

    def check_machine(self) -> None:
        """Raise SteleError if this machine lacks the device, or if devices would share processors."""
        if self.device == "cuda" and devices.first() is None:
            hidden = " that CUDA_VISIBLE_DEVICES allows" if "CUDA_VISIBLE_DEVICES" in os.environ else ""
            raise SteleError(f"--device cuda: this machine has no NVIDIA GPU{hidden}. Use --device cpu.")
        usable = processors.count()
        if self.device == "cpu" and self.devices > 1 and self.processors > usable:
            raise SteleError(
                f"--devices {self.devices} with {self.threads} threads each needs {self.processors} processors, and "
                f"this machine has {usable}. Use fewer devices or --threads."
            )

    def as_request(self, *, tuned: bool) -> dict[str, object]:
        """Return the settings in the form that the worker's ``configure`` accepts.

        ``tuned`` is false for a model of the user: Stele then sets no flags that make a framework fast.
        """
        left_out = ("malloc", *(() if self.devices > 1 else OF_DEVICES))
        fields = {name: value for name, value in asdict(self).items() if name not in left_out}
        return {**fields, "autotune": not self.deterministic, "tuned": tuned}

    def variables(self) -> dict[str, str]:
        """Return the environment variables that numerical libraries read only once, when they are loaded."""
        names = (THREADS, "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
        threads = dict.fromkeys(names, str(self.threads))
        device = devices.variables(self.device, self.precision, self.devices)
        return {**threads, **device, **MALLOC[self.malloc], "PYTHONHASHSEED": "0"}

    def summary(self) -> str:
        """Return the settings as text: ``cpu, 2 threads, fp32, seed 0``."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        parts = [self.device, threads, self.precision, f"seed {self.seed}"]
        if self.devices > 1:
            parts[1:2] = [f"{self.devices} devices", f"{self.scaling} scaling", f"{threads} each"]
        return ", ".join([*parts, "deterministic"] if self.deterministic else parts)
