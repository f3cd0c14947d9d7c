"""CNTK 2 around any Task: the CPU release, float32."""

import os

import cntk as C
import numpy
from cntk import cntk_py  # the public modules cannot set threads, nor read back what was set

MKL_KERNELS = "MKL_DEBUG_CPU_TYPE"


def configure(settings):
    """See ``stele_worker.frameworks``; settings as in ``stele_worker.protocol``.

    Autotune has nothing to set: it is cuDNN's.
    """
    if settings["device"] != "cpu":
        reason = "CNTK {} computes on device 'cpu' only, not {!r}: its GPU release is cntk-gpu, for CUDA 10.0"
        raise RuntimeError(reason.format(C.__version__, settings["device"]))
    if settings["precision"] != "fp32":
        reason = "CNTK {} has precision 'fp32' only on a CPU, not {!r}: ask for 'fp32'"
        raise RuntimeError(reason.format(C.__version__, settings["precision"]))
    if settings["tuned"] and kernels():
        os.environ.setdefault(MKL_KERNELS, kernels())  # MKL reads it when it first computes
    C.device.try_set_default_device(C.device.cpu())
    cntk_py.set_max_num_cputhreads(settings["threads"])
    cntk_py.set_fixed_random_seed(settings["seed"])
    if settings["deterministic"]:
        cntk_py.force_deterministic_algorithms()


def kernels():
    """The number by which to call MKL's kernels where it does not choose them by itself; None elsewhere.

    The MKL of 2018 that CNTK brings along has only its oldest kernels for a processor that Intel did not
    make, a third as fast as AVX2's and a fifth as fast as AVX-512's in a product of two matrices.
    """
    try:
        with open("/proc/cpuinfo") as file:
            known = set(file.read().split())
    except OSError:
        return None
    if "AuthenticAMD" not in known or "avx2" not in known:
        return None
    return "7" if known.issuperset({"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}) else "5"


def versions():
    return {"cntk": C.__version__}


def flags():
    return {
        "device": str(C.use_default_device()),
        "threads": cntk_py.get_max_num_cputhreads(),
        "seed": cntk_py.get_random_seed(),
        "deterministic": cntk_py.should_force_deterministic_algorithms(),
        "mkl_debug_cpu_type": os.environ.get(MKL_KERNELS),
    }


def put(array):
    # stays NumPy's, as CNTK takes it: a Value has no way to gather rows
    return numpy.ascontiguousarray(array, numpy.float32)  # labels and tokens too: CNTK has no integers


def take(data, rows):
    return C.Value(data[rows])


def wait(value):
    pass  # on a CPU a call returns when it has been computed


def fetch(value):
    return value.asarray() if isinstance(value, C.Value) else numpy.asarray(value)


def peak_memory():
    return None
