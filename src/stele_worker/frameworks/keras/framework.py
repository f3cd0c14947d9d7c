"""Keras 3 on the backend in KERAS_BACKEND: TensorFlow, JAX or PyTorch.

The backend's module handles device, threads, arrays and waiting. This module has the training loop that Keras
documents for each backend, with public names that every Keras 3 release has. It was as fast as the step inside
``fit``. It returns the batch's loss on the device, where ``fit`` returns a running mean.
"""

import atexit
import random

import keras
import numpy

from stele_worker.frameworks import base, load
from stele_worker.ranks import ranks


class Framework(base.Framework):
    # the mode of the backend: "eager" is run_eagerly=True in Keras, "jit" is jit_compile=True
    MODES = {
        "default": {"jax": "jit", "tensorflow": "graph", "torch": "eager"},
        "eager": {"jax": "op-by-op", "tensorflow": "eager", "torch": "eager"},
        "jit": {"jax": "jit", "tensorflow": "xla", "torch": "compile"},
    }
    HAS_PROFILER = True
    BACKEND = keras.backend.backend()

    def __init__(self, name):
        super().__init__(name)
        self.native = load(self.BACKEND)
        self.PARALLEL, self.STATISTICS = self.native.PARALLEL, self.native.STATISTICS
        self.device = "cpu"
        self.deterministic = False
        self.mode = "default"
        self.precision = "fp32"
        self.tuned = True
        self.scope = None  # a reference, because Keras leaves the scope when it is collected

    def configure(self, settings):
        self.device, self.deterministic, self.mode = settings["device"], settings["deterministic"], settings["mode"]
        self.precision, self.tuned = settings["precision"], settings["tuned"]
        self.native.must_obey = self.must_obey
        self.native.configure(dict(settings, mode=self.MODES[self.mode][self.BACKEND]))
        if self.BACKEND == "torch":  # Keras uses CUDA if there is a CUDA device
            # Keras compiles the call of each layer as one function. PyTorch compiles it for eight layers and leaves
            # the others eager. With a limit of 256, a training step of MobileNetV2 took 2.0 s, not 0.5: each call
            # checks all
            self.native.strict = False
            self.scope = keras.device("gpu:{}".format(ranks.number()) if self.device == "cuda" else "cpu")
            self.scope.__enter__()
            atexit.register(self.scope.__exit__, None, None, None)  # while the modules that it uses exist
        if self.BACKEND == "jax" and ranks.count > 1:
            used = keras.distribution.list_devices()[: ranks.count]
            keras.distribution.set_distribution(keras.distribution.DataParallel(devices=used))
        # Keras draws its seeds from here. keras.utils.set_random_seed would import TensorFlow wherever it is installed
        random.seed(settings["seed"])
        numpy.random.seed(settings["seed"])
        if self.tuned:
            keras.config.set_floatx("float32")
            keras.config.set_image_data_format("channels_last")

    def versions(self):
        return {"keras": keras.__version__, **self.native.versions()}

    def flags(self):
        of_recipes = self.image_data_format("float32" if self.precision == "fp32" else "other")
        return {
            "backend": self.BACKEND,
            "image_data_format": keras.config.image_data_format(),
            "image_data_format_of_recipes": of_recipes if self.tuned else None,
            "dtype_policy": keras.config.dtype_policy().name,
            "jit_compile": self.jit_compile(recurrent=False),
            "jit_compile_recurrent": self.jit_compile(recurrent=True),
            "use_cudnn": self.use_cudnn(),
            **self.native.flags(),
        }

    def image_data_format(self, dtype):
        """Return the layout of images in recipes. XLA and TensorFlow choose that of their kernels themselves."""
        first = self.BACKEND == "torch" and self.native.channels_first(dtype)
        return "channels_first" if first else "channels_last"

    def use_cudnn(self):
        """Return whether a GRU uses the backend's fused operation.

        On a CPU the plain loop is faster if XLA compiles it. XLA cannot compile that of TensorFlow.
        """
        if self.BACKEND == "tensorflow" and self.jit_compile(recurrent=True):
            return False
        return "auto" if self.device == "cuda" or self.BACKEND == "torch" else False

    def jit_compile(self, recurrent):
        """Return whether a compiler compiles a function; never "auto", which has a different meaning on each backend.

        PyTorch runs eagerly. On TensorFlow with a CPU, XLA made convolutions 1.6 times slower and the loop over time
        1.3 times faster. With a GPU the choice is that of Keras: XLA except for cuDNN and determinism.
        """
        if self.mode != "default":
            return self.mode == "jit"
        if self.BACKEND == "tensorflow":
            return recurrent if self.device == "cpu" else not recurrent and not self.deterministic
        return self.BACKEND == "jax"

    def in_force(self):
        return self.native.in_force()

    def compiled(self, function=None, **options):
        """Return a function as the mode of the backend executes it: see ``compiled`` there."""
        return self.native.compiled(function, **options)

    def put(self, array):
        return self.native.put(array)

    def take(self, data, rows):
        return self.native.take(data, rows)

    def take_pixels(self, images, table, layout):
        return self.native.take_pixels(images, table, layout)  # Keras' operations would not be compiled

    def wait(self, value):
        self.native.wait(value)

    def fetch(self, value):
        return self.native.fetch(value)

    def profile(self, run):
        return self.native.profile(run)

    def kernels(self, run):
        return self.native.kernels(run)

    def forget_peak_memory(self):
        self.native.forget_peak_memory()

    def peak_memory(self):
        return self.native.peak_memory()

    def copies(self, value):
        return self.native.copies(value)

    def draw_integers(self, samples, limit, seed):
        dtype = "int32" if self.BACKEND == "jax" else "int64"  # as put() gives
        return keras.random.randint((samples, 1), 0, limit, dtype, seed=seed)

    def draw_weight(self, shape, seed):
        """Return what Keras' layers start from, as an array in the Task's layout."""
        shape = (*shape[2:], shape[1], shape[0])
        weight = keras.ops.convert_to_numpy(keras.initializers.GlorotUniform(seed)(shape))
        return weight.transpose(3, 2, 0, 1) if weight.ndim == 4 else weight.T
