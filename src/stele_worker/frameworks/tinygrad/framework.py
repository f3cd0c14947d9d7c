"""tinygrad: it generates C for each kernel, and clang compiles it."""

import subprocess
from importlib import metadata  # novermin

from tinygrad import Device, Tensor, TinyJit, dtypes, nn
from tinygrad.helpers import DEV, JIT, NUM_CPU_THREADS, PARALLEL, USE_ATOMICS

from stele_worker.frameworks import base
from stele_worker.protocol import SetupError


class Framework(base.Framework):
    MODES = ("jit",)

    def __init__(self, name):
        super().__init__(name)
        self.mode = "jit"
        self.functions = []  # of each compiled function, {shapes of its arguments: its TinyJit}

    def configure(self, settings):
        self.mode = settings["mode"]
        if self.must_obey and not JIT:
            raise SetupError("JIT=0 disables TinyJit, which mode 'jit' needs. Unset JIT.")
        if settings["precision"] not in ("fp32", "default"):
            reason = "tinygrad is supported in precision 'fp32' only, not {!r}: use precision 'fp32'"
            raise RuntimeError(reason.format(settings["precision"]))
        DEV.value = settings["device"].upper()
        # tinygrad divides a kernel into this many parts; 0.14 computes them in one thread, one after the other
        NUM_CPU_THREADS.value = settings["threads"]
        # compile in this process: its default is a pool of processes, which it starts again and again
        PARALLEL.value = 0
        # else the gradient of an embedding compares each row with each token. One thread adds in a fixed order
        USE_ATOMICS.value = 1
        Tensor.manual_seed(settings["seed"])

    def versions(self):
        compiler = subprocess.check_output(["clang", "--version"]).decode().splitlines()[0]
        return {"tinygrad": metadata.version("tinygrad"), "clang": compiler}

    def flags(self):
        return {
            "device": Device.DEFAULT,
            "renderer": type(Device[Device.DEFAULT].renderer).__name__,
            "threads": NUM_CPU_THREADS.value,
            "jit": JIT.value,
            "atomics": USE_ATOMICS.value,
        }

    def compiled(self, function):
        """Return a function of tensors that TinyJit captures at its second call, for each shape of the arguments.

        From then on, its result is always in the same memory.
        """
        jits = {}
        self.functions.append(jits)

        def run(*arrays):
            shapes = tuple(array.shape for array in arrays)
            if shapes not in jits:
                jits[shapes] = TinyJit(function)
            return jits[shapes](*arrays)

        return run

    def in_force(self):
        """Return how many graphs of kernels TinyJit captured."""
        return {"graphs": sum(jit.captured is not None for jits in self.functions for jit in jits.values())}

    def put(self, array):
        return Tensor(array).realize()

    def take(self, data, rows):
        return data[self.put(rows.astype("int32"))].realize()

    def draw_integers(self, samples, limit, seed):
        Tensor.manual_seed(seed)  # tinygrad has no other generator than its global one
        return Tensor.randint(samples, 1, high=limit).realize()

    def draw_weight(self, shape, seed):
        """Return what tinygrad's layers start from, as an array in the Task's layout."""
        Tensor.manual_seed(seed)
        if len(shape) == 2:
            return nn.Linear(shape[1], shape[0]).weight.numpy()
        return nn.Conv2d(shape[1], shape[0], shape[2:]).weight.numpy()

    def wait(self, value):
        Device[Device.DEFAULT].synchronize()

    def fetch(self, value):
        return value.cast(dtypes.float32).numpy()
