"""NumPy: the oracle. It computes in float64 on the CPU for every dtype of the Task.

Its recipes compute the golden numbers. The tests use it as their framework, because no other one is installed. Its
random numbers depend only on the Task's seed, and it is deterministic on one machine.
"""

import os

import numpy

from stele_suite.tasks import augmentation
from stele_worker.frameworks import base

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def blas_library():
    """Return the name of the BLAS library that numpy was built with, or None if unknown."""
    config = numpy.__config__
    if hasattr(config, "CONFIG"):  # from numpy 1.26 on
        library = config.CONFIG["Build Dependencies"]["blas"]
        return "{} {}".format(library.get("name"), library.get("version"))
    return " ".join(sorted(set(config.get_info("blas_opt").get("libraries", [])))) or None


class Framework(base.Framework):
    def configure(self, settings):
        # the BLAS library read its number of threads from the environment at the import of numpy, so "threads" has no
        # effect here. "autotune", "deterministic" and "seed" have none either
        if settings["device"] != "cpu":
            reason = "NumPy supports device 'cpu' only, not {!r}: use device 'cpu'"
            raise RuntimeError(reason.format(settings["device"]))
        if settings["precision"] not in ("fp32", "default"):
            reason = "NumPy supports precision 'fp32' only (computed in float64), not {!r}: use precision 'fp32'"
            raise RuntimeError(reason.format(settings["precision"]))

    def versions(self):
        return {"numpy": numpy.__version__, "blas": blas_library()}

    def flags(self):
        return dict({name.lower(): os.environ.get(name) for name in THREADS}, device="cpu", dtype="float64")

    def put(self, array):
        return array

    def take(self, data, rows):
        return data[rows]

    def take_pixels(self, images, table, layout):
        return augmentation.apply(table, images)

    def fetch(self, value):
        return numpy.asarray(value)
