"""Theano below Lasagne and Keras 2: on the CPU in float32, with the OpenBLAS that NumPy's wheel brings along."""

import ctypes
import os
from glob import glob

import numpy


def openblas():
    """The OpenBLAS inside NumPy's wheel; None if NumPy was built in another way."""
    package = os.path.dirname(numpy.__file__)
    folders = package + ".libs", os.path.join(package, ".libs")
    found = [path for folder in folders for path in glob(os.path.join(folder, "libopenblasp-*.so"))]
    return found[0] if found else None


def theano_flags():
    """What Theano reads only once, when it is imported; the environment's own flags come last and so prevail."""
    flags = ["floatX=float32"]  # float64 as shipped
    if openblas():  # Theano does not find it, and NumPy's products in its place crash in OpenMP's threads
        flags += ["openmp=True", "blas.ldflags=-L{} -l:{}".format(*os.path.split(openblas()))]
    return ",".join(flags + [os.environ.get("THEANO_FLAGS", "")])


os.environ["THEANO_FLAGS"] = theano_flags()

import theano  # noqa: E402
from theano.gof.cmodule import gcc_version  # noqa: E402

# a device array is NumPy's: a function takes it without a copy, and returns when it has computed
from stele_worker.frameworks.numpy import fetch, peak_memory, put, take, wait  # noqa: E402, F401


def configure(settings):
    """OpenMP and OpenBLAS read their number of threads from the environment when they were loaded, so ``threads``
    sets nothing here; autotune has nothing to set.
    """
    name = "Theano {}".format(theano.__version__)
    if settings["device"] != "cpu":
        reason = "{} is set up for device 'cpu', not {!r}, which would need libgpuarray: ask for 'cpu'"
        raise RuntimeError(reason.format(name, settings["device"]))
    if settings["precision"] != "fp32":
        raise RuntimeError("{} has no precision {!r}: ask for 'fp32'".format(name, settings["precision"]))
    if not theano.config.cxx:
        raise RuntimeError("{} found no C++ compiler: install g++".format(name))
    theano.config.allow_gc = False  # a step's memory is kept for the next
    theano.config.deterministic = "more" if settings["deterministic"] else "default"


def versions():
    return {
        "theano": theano.__version__,
        "compiler": gcc_version(),
        "blas": blas("openblas_get_config", ctypes.c_char_p),
    }


def flags():
    return {
        "device": theano.config.device,
        "floatX": theano.config.floatX,
        "optimizer": theano.config.optimizer,
        "openmp": theano.config.openmp,
        "openmp_threads": ctypes.CDLL("libgomp.so.1").omp_get_max_threads(),  # g++ brings it
        "blas": theano.config.blas.ldflags,
        "blas_threads": blas("openblas_get_num_threads", ctypes.c_int),
        "allow_gc": theano.config.allow_gc,
        "deterministic": theano.config.deterministic,
    }


def blas(question, kind):
    """What OpenBLAS answers; None without it."""
    if openblas() is None:
        return None
    function = getattr(ctypes.CDLL(openblas()), question)
    function.restype = kind
    answer = function()
    return answer.decode() if kind is ctypes.c_char_p else answer
