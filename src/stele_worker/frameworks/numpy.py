"""NumPy around any Task: the oracle. Float64 on the CPU, whatever the Task's dtype.

Its recipes are the source of the golden numbers, and the framework of the tests, where no other is
installed. They draw random numbers from the Task's seed alone, and are deterministic on one machine.
"""

import os

import numpy

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def configure(settings):
    """See ``stele_worker.frameworks``; settings as in ``stele_worker.protocol``.

    The BLAS library read its number of threads from the environment when numpy was imported, so
    ``threads`` sets nothing here; autotune, deterministic and seed have nothing to set.
    """
    if settings["device"] != "cpu":
        reason = "NumPy computes on device 'cpu' only, not {!r}: ask for 'cpu'"
        raise RuntimeError(reason.format(settings["device"]))
    if settings["precision"] != "fp32":
        reason = "NumPy has precision 'fp32' only (computed in float64), not {!r}: ask for 'fp32'"
        raise RuntimeError(reason.format(settings["precision"]))


def versions():
    return {"numpy": numpy.__version__, "blas": blas()}


def blas():
    """The BLAS library that numpy was built with, in its own words; None where numpy does not say."""
    config = numpy.__config__
    if hasattr(config, "CONFIG"):  # from numpy 1.26 on
        library = config.CONFIG["Build Dependencies"]["blas"]
        return "{} {}".format(library.get("name"), library.get("version"))
    return " ".join(sorted(set(config.get_info("blas_opt").get("libraries", [])))) or None


def flags():
    return dict({name.lower(): os.environ.get(name) for name in THREADS}, device="cpu", dtype="float64")


def put(array):
    return array


def take(data, rows):
    return data[rows]


def wait(value):
    pass


def fetch(value):
    return numpy.asarray(value)


def peak_memory():
    return None
