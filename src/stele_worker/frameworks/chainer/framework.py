"""Chainer: NumPy computes on a CPU, CuPy on CUDA."""

import copy
import os
import weakref

import chainer
import numpy

from stele_worker.frameworks import base
from stele_worker.ranks import ranks


class Framework(base.Framework):
    MODES = ("define-by-run", "as-shipped", "ideep", "static-graph")
    PARALLEL = "sharded"  # the batch over copies of the network in one process, as ParallelUpdater does it
    STATISTICS = "own"  # MultiNodeBatchNormalization of ChainerMN would exchange them; it needs MPI

    def __init__(self, name):
        super().__init__(name)
        self.host = chainer.get_device("@numpy")
        self.device = self.host
        self.mode = "define-by-run"
        self.replicas = weakref.WeakKeyDictionary()  # network -> its copies for the other devices
        self.static_chains = []  # whose computations were recorded as a schedule

    def configure(self, settings):
        # NumPy's BLAS read its number of threads from the environment at import, so "threads" has no effect here
        self.mode = settings["mode"]
        if settings["precision"] not in ("fp32", "default"):
            reason = "Chainer {} is supported in precision 'fp32' only, not {!r}: use precision 'fp32'"
            raise RuntimeError(reason.format(chainer.__version__, settings["precision"]))
        if settings["device"] == "cuda" and not chainer.backends.cuda.available:
            advice = "Install cupy 7 on a machine with a GPU, or use device 'cpu'."
            raise RuntimeError("Chainer {} found no CUDA device. {}".format(chainer.__version__, advice))
        if self.mode == "ideep" and not chainer.backends.intel64.is_ideep_available():
            raise RuntimeError("Chainer found no iDeep: install ideep4py, which has wheels up to Python 3.7")
        on_cpu = "@intel64" if self.mode == "ideep" else "@numpy"
        self.device = chainer.get_device("@cupy:0" if settings["device"] == "cuda" else on_cpu)
        self.device.use()
        chainer.global_config.use_ideep = "auto" if self.mode == "ideep" else "never"
        self.device.xp.random.seed(settings["seed"])
        chainer.global_config.dtype = numpy.dtype("float32")
        chainer.global_config.autotune = settings["autotune"]
        chainer.global_config.cudnn_deterministic = settings["deterministic"]
        # Chainer's performance guide turns it off for tested code; it takes 1/6 of a GRU training step on a CPU
        chainer.global_config.type_check = self.mode == "as-shipped"

    def versions(self):
        cupy = chainer.backends.cuda.cupy if chainer.backends.cuda.available else None
        return {
            "chainer": chainer.__version__,
            "numpy": numpy.__version__,
            "cupy": cupy.__version__ if cupy else None,
            "cuda": cupy.cuda.runtime.runtimeGetVersion() if cupy else None,
        }

    def flags(self):
        return {
            "device": str(self.device),
            "threads": os.environ.get("OPENBLAS_NUM_THREADS"),
            "dtype": str(chainer.config.dtype),
            "cudnn_autotune": chainer.config.autotune,
            "deterministic": chainer.config.cudnn_deterministic,
            "use_cudnn": chainer.config.use_cudnn,
            "use_ideep": chainer.config.use_ideep,
            "type_check": chainer.config.type_check,
            "mkl_kernels": os.environ.get("MKL_DEBUG_CPU_TYPE"),
        }

    def in_force(self):
        """Return whether Chainer computes with iDeep, and how many schedules static_graph recorded."""
        managers = [chain.schedule_manager for chain in self.static_chains]
        schedules = sum(len(recorded) for manager in managers for recorded in manager.schedules.values())
        done = {"ideep": int(chainer.config.use_ideep != "never"), "schedules": schedules}
        obeyed = bool(done["ideep"]) == (self.mode == "ideep") and (schedules > 0) == (self.mode == "static-graph")
        return self.check_mode(done, obeyed)

    def networks(self, net):
        """Return a network and its copies, one network for each device."""
        if net not in self.replicas:
            self.replicas[net] = [copy.deepcopy(net) for _ in range(1, ranks.count)]
        return [net] + self.replicas[net]

    def divided(self, batch, count):
        return [batch] if count == 1 else self.device.xp.split(batch, ranks.equal_shares(len(batch), count))

    def put(self, array):
        # iDeep converts what it computes with
        return self.host.send(array) if self.mode == "ideep" else self.device.send(array)

    def take(self, data, rows):
        batch = data[self.put(rows)]
        return batch if ranks.count == 1 else self.divided(batch, ranks.count)  # a list: the part of each device

    def wait(self, value):
        if self.device.xp is not numpy:
            self.device.device.synchronize()

    def fetch(self, value):
        return self.host.send(value)

    def copies(self, value):
        """Return the part of a batch that each device has, as NumPy arrays."""
        return [self.fetch(part) for part in value] if isinstance(value, list) else [self.fetch(value)]

    def on_each_device(self, read, net):
        """Return read(net) of each device."""
        return [read(one) for one in self.networks(net)]

    def peak_memory(self):
        return None if self.device.xp is numpy else self.device.xp.get_default_memory_pool().total_bytes()
