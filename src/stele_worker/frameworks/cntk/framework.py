"""CNTK 2: the CPU release, float32."""

import os

import cntk as C
import numpy
from cntk import cntk_py  # the public modules can neither set threads nor read settings back

from stele_worker.frameworks import base

MKL_KERNELS = "MKL_DEBUG_CPU_TYPE"


def mkl_kernels():
    """Return MKL's number for the processor's best kernels, or None if MKL selects them itself.

    CNTK includes an MKL of 2018, which uses its oldest kernels on processors not made by Intel. In a product of
    two matrices these are 1/3 as fast as the AVX2 kernels and 1/5 as fast as the AVX-512 kernels.
    """
    try:
        with open("/proc/cpuinfo") as file:
            words = set(file.read().split())
    except OSError:
        return None
    if "AuthenticAMD" not in words or "avx2" not in words:
        return None
    return "7" if words.issuperset({"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}) else "5"


class Framework(base.Framework):
    MODES = ("graph", "as-shipped")

    def configure(self, settings):
        # "autotune" has no effect, because it belongs to cuDNN
        if settings["device"] != "cpu":
            reason = "CNTK {} supports device 'cpu' only, not {!r}: use device 'cpu' (for CUDA 10.0 see cntk-gpu)"
            raise RuntimeError(reason.format(C.__version__, settings["device"]))
        if settings["precision"] != "fp32":
            reason = "CNTK {} supports precision 'fp32' only on a CPU, not {!r}: use precision 'fp32'"
            raise RuntimeError(reason.format(C.__version__, settings["precision"]))
        if settings["mode"] != "as-shipped" and mkl_kernels():
            os.environ.setdefault(MKL_KERNELS, mkl_kernels())  # MKL reads it at its first computation
        C.device.try_set_default_device(C.device.cpu())
        cntk_py.set_max_num_cputhreads(settings["threads"])
        cntk_py.set_fixed_random_seed(settings["seed"])
        if settings["deterministic"]:
            cntk_py.force_deterministic_algorithms()

    def versions(self):
        return {"cntk": C.__version__}

    def flags(self):
        return {
            "device": str(C.use_default_device()),
            "threads": cntk_py.get_max_num_cputhreads(),
            "seed": cntk_py.get_random_seed(),
            "deterministic": cntk_py.should_force_deterministic_algorithms(),
            "mkl_debug_cpu_type": os.environ.get(MKL_KERNELS),
        }

    def put(self, array):
        # stays a NumPy array, which CNTK accepts: a Value cannot gather rows
        return numpy.ascontiguousarray(array, numpy.float32)  # labels and tokens as well: CNTK has no integers

    def take(self, data, rows):
        return C.Value(data[rows])

    def fetch(self, value):
        return value.asarray() if isinstance(value, C.Value) else numpy.asarray(value)
