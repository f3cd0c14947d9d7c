"""Theano for Lasagne and Keras 2: on the CPU in float32, with the OpenBLAS of NumPy's wheel."""

import ctypes
import os
from glob import glob

import numpy


def openblas():
    """Return the path of the OpenBLAS inside NumPy's wheel, or None if there is none."""
    package = os.path.dirname(numpy.__file__)
    folders = package + ".libs", os.path.join(package, ".libs")
    paths = [path for folder in folders for path in glob(os.path.join(folder, "libopenblasp-*.so"))]
    return paths[0] if paths else None


def theano_flags():
    """Return the flags that Theano reads at import. THEANO_FLAGS of the environment comes last and takes precedence."""
    flags = ["floatX=float32"]  # the default is float64
    if openblas():  # Theano does not find it, and NumPy's products crash in OpenMP's threads
        flags += ["openmp=True", "blas.ldflags=-L{} -l:{}".format(*os.path.split(openblas()))]
    return ",".join(flags + [os.environ.get("THEANO_FLAGS", "")])


os.environ["THEANO_FLAGS"] = theano_flags()

import theano  # noqa: E402
from theano.gof.cmodule import gcc_version  # noqa: E402

# arrays are NumPy arrays: a function takes them without a copy and returns after its computation
from stele_worker.frameworks.numpy import framework as of_numpy  # noqa: E402


def call_openblas(name, result_type):
    """Return the result of OpenBLAS's function ``name``, or None without OpenBLAS."""
    if openblas() is None:
        return None
    function = getattr(ctypes.CDLL(openblas()), name)
    function.restype = result_type
    result = function()
    return result.decode() if result_type is ctypes.c_char_p else result


class Framework(of_numpy.Framework):
    def configure(self, settings):
        # OpenMP and OpenBLAS read their number of threads from the environment when they are loaded, so "threads" has
        # no effect here. "autotune" has none either
        name = "Theano {}".format(theano.__version__)
        if settings["device"] != "cpu":
            reason = "{} is supported on device 'cpu' only, not {!r}, which needs libgpuarray: use device 'cpu'"
            raise RuntimeError(reason.format(name, settings["device"]))
        if settings["precision"] != "fp32":
            raise RuntimeError("{} has no precision {!r}: use precision 'fp32'".format(name, settings["precision"]))
        if not theano.config.cxx:
            raise RuntimeError("{} found no C++ compiler: install g++".format(name))
        theano.config.allow_gc = False  # keep a step's memory for the next step
        theano.config.deterministic = "more" if settings["deterministic"] else "default"

    def versions(self):
        return {
            "theano": theano.__version__,
            "compiler": gcc_version(),
            "blas": call_openblas("openblas_get_config", ctypes.c_char_p),
        }

    def flags(self):
        return {
            "device": theano.config.device,
            "floatX": theano.config.floatX,
            "optimizer": theano.config.optimizer,
            "openmp": theano.config.openmp,
            "openmp_threads": ctypes.CDLL("libgomp.so.1").omp_get_max_threads(),  # part of g++
            "blas": theano.config.blas.ldflags,
            "blas_threads": call_openblas("openblas_get_num_threads", ctypes.c_int),
            "allow_gc": theano.config.allow_gc,
            "deterministic": theano.config.deterministic,
        }
