"""A worker of PyTorch with a planted change: run ``planted_torch.py operator``, ``default`` or ``optimizer``."""

import functools
import sys
import time

import stele_worker.__main__ as worker
from stele_worker import frameworks

SLOWER = 0.02  # seconds that each call of the slow operator takes longer
library = []  # its kernel is removed together with the object


def plant_operator(torch):
    """Replace the gradient of ReLU by one that takes longer."""

    def slow(gradient, output, threshold):
        end = time.perf_counter() + SLOWER
        while time.perf_counter() < end:
            pass
        return gradient * (output > threshold)

    library.append(torch.library.Library("aten", "IMPL"))
    library[0].impl("threshold_backward", slow, "CPU")


def plant_default(torch):
    """Switch oneDNN off, as a release could."""
    torch.backends.mkldnn.set_flags(False)


def plant_optimizer(torch):
    """Let gradient descent move the weights after every second step only, and those of the first layer never.

    A step takes less time, because the gradients of the first layer are not computed.
    """
    move = torch.optim.SGD.step

    def lazy(optimizer, closure=None):
        optimizer.calls = getattr(optimizer, "calls", 0) + 1
        for parameter in optimizer.param_groups[0]["params"][:2]:
            parameter.requires_grad_(False)
        return move(optimizer, closure) if optimizer.calls % 2 else None

    torch.optim.SGD.step = lazy


def load(name, change):
    """Load the framework as the worker does, and change it."""
    framework = LOAD(name)
    change(sys.modules["torch"])
    return framework


LOAD = frameworks.load
planted = {"operator": plant_operator, "default": plant_default, "optimizer": plant_optimizer}[sys.argv[1]]
frameworks.load = functools.lru_cache(maxsize=None)(lambda name: load(name, planted))  # recipes load it again
sys.argv[1:] = []
sys.exit(worker.main())
