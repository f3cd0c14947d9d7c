"""The settings of a framework. The default of every option is defined here and nowhere else."""

from dataclasses import asdict, dataclass, field
from typing import Any

from stele.errors import SteleError
from stele.measuring import devices, processors

DEVICES = devices.NAMES
SEEDS = range(2**32)  # of numpy.random.RandomState
PRECISIONS = ("fp32", "tf32", "bf16", "default")
THREADS = "OMP_NUM_THREADS"
SCALINGS = ("weak", "strong")
OF_DEVICES = ("devices", "scaling")
# settings of the allocator of the C library. "steady" keeps freed memory and requests huge pages: on a quiet machine
# the medians of launches then spread by 1 %, not 6 %. It hides what a framework's allocations cost; "plain" shows it
MALLOC = {
    "plain": {},
    "steady": {
        "MALLOC_MMAP_THRESHOLD_": str(2**32),
        "MALLOC_TRIM_THRESHOLD_": str(2**32),
        "MALLOC_TOP_PAD_": str(2**28),
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    },
}


@dataclass(frozen=True)
class Settings:
    """Settings that every framework receives before it computes; their read-back values are the flags of a Run."""

    device: str = field(default_factory=devices.default)
    # fp32: TF32 off; tf32: on; bf16: mixed precision, parameters in float32; default: the framework's
    precision: str = "fp32"
    threads: int = field(default_factory=processors.count)
    deterministic: bool = False  # deterministic kernels, autotuning off
    seed: int = 0
    malloc: str = "plain"
    devices: int = 1  # that divide each batch; ``threads`` are those of each
    scaling: str = "weak"  # each device has the batch of one device; strong: the batch is divided

    def __post_init__(self) -> None:
        if self.precision == "tf32" and self.device == "cpu":
            raise SteleError(
                "Precision tf32 needs a GPU: no CPU has TF32. Add --device cuda, or omit --precision."
            )
        if self.threads < 1:
            raise SteleError(f"--threads {self.threads}: at least one thread is needed.")
        if self.devices < 1:
            raise SteleError(f"--devices {self.devices}: at least one device is needed.")
        if self.scaling not in SCALINGS:
            raise SteleError(f"--scaling {self.scaling}: choose from {', '.join(SCALINGS)}.")
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

    def check_processors(self) -> None:
        """Raise SteleError if devices of the processor would share processors, because that measures the sharing."""
        usable = processors.count()
        if self.device == "cpu" and self.devices > 1 and self.processors > usable:
            raise SteleError(
                f"--devices {self.devices} with {self.threads} threads each needs {self.processors} processors, and "
                f"this machine has {usable}. Use fewer devices or --threads."
            )

    def as_request(self, *, tuned: bool) -> dict[str, Any]:
        """Return the settings in the form that the worker's ``configure`` accepts.

        ``tuned`` is false for a model of the user: Stele then sets no flags that make a framework fast.
        """
        fields = {name: value for name, value in self.as_fields().items() if name != "malloc"}
        return {**fields, "autotune": not self.deterministic, "tuned": tuned}

    def as_fields(self) -> dict[str, Any]:
        """Return the settings as a Run contains them: without those of several devices if there is one."""
        fields = asdict(self)
        return {name: value for name, value in fields.items() if self.devices > 1 or name not in OF_DEVICES}

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
