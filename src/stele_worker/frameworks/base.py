"""What Stele asks of a framework, with defaults: ``framework.py`` of its folder has a subclass, ``Framework``."""

import os

from stele_worker import kernels
from stele_worker.protocol import SetupError

ON = ("1", "true", "yes", "on", "t", "y")  # values of a variable


class Framework:
    """Support for a framework that does not depend on a Task. A worker has one instance, which ``load`` returns.

    What its modules ``recipe.py``, ``attention.py``, ``images.py``, ``loader.py``, ``capabilities.py``, ``defaults.py``
    and ``model.py`` have is described in the modules of ``stele_worker`` that read them.
    """

    # its modes of execution, the default first; () if it has only one
    MODES = ()
    # how it trains on several devices, "processes" or "sharded": see ``stele_worker.ranks``; None if it cannot
    PARALLEL = None
    # whose samples batch normalisation uses on several devices: "own", those of each device, or "all"
    STATISTICS = None
    # how operations in a profile begin that are Python code of the framework
    ANNOTATIONS = ()
    # whether ``profile`` shows operations; if not, Stele samples functions of Python
    HAS_PROFILER = False

    def __init__(self, name):
        self.name = name
        self.mode = None
        self.must_obey = True  # whether a framework that ignores the mode is an error

    def resolve(self, settings):
        """Return settings in which "mode" is one of MODES, by default the first; None if there are none.

        "tuned" is true by default. Without it, and without a mode, the user's variables decide how a framework
        executes. Raises ValueError if the mode is unknown.
        """
        self.must_obey = settings.get("tuned", True) or bool(settings.get("mode"))
        mode = settings.get("mode") or next(iter(self.MODES), None)
        if mode is not None and mode not in self.MODES:
            message = "{} has no mode {!r}. It has: {}"
            raise ValueError(message.format(self.name, mode, ", ".join(self.MODES) or "none"))
        return dict(settings, mode=mode, tuned=settings.get("tuned", True))

    def configure(self, settings):
        """Set device, threads, precision, determinism and seed, before any array is created.

        ``settings`` are those of ``stele_worker.protocol``, as ``resolve`` returns them.
        """
        raise NotImplementedError

    def versions(self):
        """Return the versions of the framework and of the libraries that compute for it, by name."""
        raise NotImplementedError

    def flags(self):
        """Return the active settings, read back from the framework."""
        raise NotImplementedError

    def in_force(self):
        """Return what the framework reports about its mode. Raises RuntimeError if it ignored the mode.

        None if it has no modes.
        """
        return None

    def require_compiler(self, variables):
        """Raise SetupError if one of these variables of the user disables the compiler, which the mode needs."""
        for name in variables if self.must_obey else ():
            if os.environ.get(name, "").lower() in ON:
                message = "{}={} disables the compiler, which mode {!r} needs. Unset {}, or measure a mode without it."
                raise SetupError(message.format(name, os.environ[name], self.mode, name))

    def check_mode(self, done, obeyed):
        """Return ``done``, what the framework reports. Raises RuntimeError if it did not do what the mode says."""
        if self.must_obey and not obeyed:
            message = "the framework ignored mode {!r} without an error. It reports: {}"
            raise RuntimeError(message.format(self.mode, done))
        return done

    def put(self, array):
        """Copy a NumPy array to the device."""
        raise NotImplementedError

    def take(self, data, rows):
        """Copy rows of an array on the device to a new array there. ``rows`` are integers of shape (rows,)."""
        raise NotImplementedError

    def take_pixels(self, images, table, layout):
        """Return the augmented images of an epoch, in the same shape: see ``stele_suite.tasks.augmentation``."""
        raise NotImplementedError

    def draw_integers(self, samples, limit, seed):
        """Return the framework's own random integers below ``limit``, of shape (samples, 1), on the device.

        This and ``draw_weight`` are for the open division of a Task.
        """
        raise NotImplementedError

    def draw_weight(self, shape, seed):
        """Return initial weights that the framework's layers draw, as an array in the Task's layout."""
        raise NotImplementedError

    def wait(self, value):
        """Return when ``value`` has been computed. By default a call returns after its computation."""

    def fetch(self, value):
        """Return a value as a NumPy array."""
        raise NotImplementedError

    def tracked(self, value):
        """Return whether a gradient could be taken through ``value``; None if the framework cannot say."""
        return None

    def copies(self, value):
        """Return the parts, or the copies, of a value on the devices of this process, as NumPy arrays."""
        return [self.fetch(value)]

    def on_each_device(self, read, net):
        """Return read(net) of each device of this process.

        It is called once if ``copies`` finds the copies of a parameter on all devices from one of them.
        """
        return [read(net)]

    def profile(self, run):
        """Return {operation: (seconds, calls)} during run(), if the framework HAS_PROFILER."""
        raise NotImplementedError

    def kernels(self, run):
        """Return {operation: the implementations that were selected} during run(), by default as oneDNN reports."""
        return kernels.selected(run)

    def forget_peak_memory(self):
        """Start again to find the peak of the device's memory, if the framework can."""

    def peak_memory(self):
        """Return the peak device memory in bytes; None if there is no device memory, or its peak is unknown."""
        return None
