"""PaddlePaddle 1: layers of ``fluid.dygraph``, executed imperatively, as a Program, or by ``@declarative``."""

import os

import numpy
import paddle
import paddle.fluid as fluid

from stele_worker.frameworks import base


class Framework(base.Framework):
    # operations of MKL-DNN in inference; its matmul is wrong if a network has several of one shape
    MKLDNN = {"conv2d", "batch_norm", "pool2d", "relu", "elementwise_add"}
    MODES = ("dygraph", "as-shipped", "program", "declarative")
    STATIC = ("program", "declarative")

    def __init__(self, name):
        super().__init__(name)
        self.threads = 1
        self.mode = "dygraph"
        self.built = []  # the Programs that were built
        self.executor = fluid.Executor(fluid.CPUPlace())
        self.seeds = numpy.random.RandomState(0)  # of dropout

    def configure(self, settings):
        self.threads, self.mode = settings["threads"], settings["mode"]
        self.seeds = numpy.random.RandomState(settings["seed"])
        if settings["device"] != "cpu" or settings["precision"] != "fp32":
            message = "Paddle {} is supported on device 'cpu' in precision 'fp32' only, not {device!r} in {precision!r}"
            raise RuntimeError(message.format(paddle.__version__, **settings))
        fluid.set_flags({"FLAGS_paddle_num_threads": self.threads})
        fluid.set_flags({"FLAGS_cpu_deterministic": settings["deterministic"]})
        # no seed: with a program's seed, dropout draws the same mask at every step
        fluid.enable_imperative(fluid.CPUPlace())

    def versions(self):
        return {"paddle": paddle.version.full_version}

    def flags(self):
        names = ["FLAGS_paddle_num_threads", "FLAGS_cpu_deterministic"]
        active = {name[len("FLAGS_") :]: value for name, value in fluid.get_flags(names).items()}
        openmp = int(os.environ["OMP_NUM_THREADS"])  # the kernels use it; Paddle sets it to 1 if it is not set
        return dict(
            active,
            device="cpu",
            threads=openmp,
            inference_mkldnn=sorted(self.MKLDNN) if self.mode == "dygraph" else [],
            mkl_kernels=os.environ.get("MKL_DEBUG_CPU_TYPE"),
        )

    def in_force(self):
        """Return how many Programs were executed, and their operations; 0 in dygraph."""
        converted = [program for program, *_ in fluid.dygraph.ProgramTranslator()._program_cache._caches.values()]
        programs = self.built + [program.main_program for program in converted]
        done = {
            "programs": len(programs),
            "operations": sum(len(program.global_block().ops) for program in programs),
        }
        return self.check_mode(done, (done["operations"] > 0) == (self.mode in self.STATIC))

    def put(self, array):
        if array.dtype == "int32":  # labels and tokens: Paddle takes only int64, and labels as a column
            array = array.astype("int64").reshape(len(array), -1)
        return fluid.dygraph.to_variable(array)

    def take(self, data, rows):
        return fluid.layers.gather(data, fluid.dygraph.to_variable(rows))

    def fetch(self, value):
        # outputs of Paddle Inference are NumPy arrays, those of an Executor LoDTensors
        return value.numpy() if hasattr(value, "numpy") else numpy.array(value)
