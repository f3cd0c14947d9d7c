"""MXNet 1 with its imperative API, Gluon. MXNet calls a device a context."""

import json
import os
import tempfile

import mxnet as mx
import numpy
from mxnet import gluon, profiler

from stele_worker.frameworks import base
from stele_worker.ranks import ranks


class Framework(base.Framework):
    # "hybridize" plans the memory once, for one shape; "onednn" fuses the operations of the inference
    MODES = ("hybridize", "as-shipped", "imperative", "onednn")
    PARALLEL = "sharded"  # the batch over the contexts of one process; the kvstore of the Trainer adds their gradients
    HAS_PROFILER = True
    STATISTICS = "own"  # SyncBatchNorm of gluon.contrib would exchange them

    def __init__(self, name):
        super().__init__(name)
        self.device = mx.cpu()
        self.contexts = [self.device]  # of --devices; the first is ``device``
        self.mode = "hybridize"
        self.blocks = []  # that compute as a graph, unless the mode is imperative

    def configure(self, settings):
        # OpenMP read its number of threads from the environment at the import of MXNet, so "threads" has no effect here
        if settings["precision"] not in ("fp32", "default"):
            reason = "MXNet {} is supported in precision 'fp32' only, not {!r}: use precision 'fp32'"
            raise RuntimeError(reason.format(mx.__version__, settings["precision"]))
        if settings["device"] == "cuda" and not mx.context.num_gpus():
            advice = "Install a CUDA build, such as mxnet-cu112, on a machine with a GPU, or use device 'cpu'."
            raise RuntimeError("MXNet {} found no CUDA device. {}".format(mx.__version__, advice))
        if settings["device"] == "cuda" and mx.context.num_gpus() < ranks.count:
            message = "MXNet {} found {} CUDA devices; --devices {} needs as many"
            raise RuntimeError(message.format(mx.__version__, mx.context.num_gpus(), ranks.count))
        kind = mx.gpu if settings["device"] == "cuda" else mx.cpu
        self.contexts = [kind(number) for number in range(ranks.count)]
        self.device = self.contexts[0]
        self.mode = settings["mode"]
        # MXNet reads it for each new operator; 2 searches without a workspace limit
        os.environ["MXNET_CUDNN_AUTOTUNE_DEFAULT"] = "2" if settings["autotune"] else "0"
        os.environ["MXNET_ENFORCE_DETERMINISM"] = "1" if settings["deterministic"] else "0"
        mx.random.seed(settings["seed"])

    def versions(self):
        features = mx.runtime.Features()
        return {
            "mxnet": mx.__version__,
            "numpy": numpy.__version__,
            "onednn": str(features.is_enabled("MKLDNN")),
            "cuda": str(features.is_enabled("CUDA")),
        }

    def flags(self):
        return {
            "device": str(self.device),
            "threads": os.environ.get("OMP_NUM_THREADS"),
            "worker_threads": os.environ.get("MXNET_CPU_WORKER_NTHREADS", "default"),
            "cudnn_autotune": os.environ["MXNET_CUDNN_AUTOTUNE_DEFAULT"],
            "deterministic": os.environ["MXNET_ENFORCE_DETERMINISM"] == "1",
            "onednn_rnn": os.environ.get("MXNET_USE_MKLDNN_RNN", "default"),
            "hybridize": self.options(),
        }

    def options(self):
        """Return the options of hybridize: static memory, which MXNet documents as fastest, or the defaults."""
        static = self.mode != "as-shipped"
        return {"static_alloc": static, "static_shape": static}

    def in_force(self):
        """Return whether the blocks computed as graphs."""
        done = {"hybridized": all(block._active for block in self.blocks)}
        return self.check_mode(done, done["hybridized"] == (self.mode != "imperative"))

    def profile(self, run):
        """Return {operation: (seconds, calls)} during run()."""
        with tempfile.TemporaryDirectory() as folder:
            profiler.set_config(profile_all=True, aggregate_stats=True, filename=os.path.join(folder, "profile.json"))
            profiler.set_state("run")
            run()
            profiler.set_state("stop")
            table = json.loads(profiler.dumps(reset=True, format="json"))["Time"]
        operators = table.get("operator", {}).items()
        return {name: (1e-3 * numbers["Total"], numbers["Count"]) for name, numbers in operators}

    def put(self, array):
        return mx.nd.array(array, ctx=self.device, dtype=array.dtype)  # without dtype, MXNet converts to float32

    def take(self, data, rows):
        batch = mx.nd.take(data, self.put(rows))
        if len(self.contexts) == 1:
            return batch
        ranks.equal_shares(len(rows), len(self.contexts))
        return gluon.utils.split_and_load(batch, self.contexts)  # a list: the part of each device

    def wait(self, value):
        mx.nd.waitall()  # a loss is ready before the parameters are updated

    def fetch(self, value):
        return value.asnumpy()

    def copies(self, value):
        """Return the part of a batch that each device has, as NumPy arrays."""
        return [self.fetch(part) for part in value] if isinstance(value, list) else [self.fetch(value)]

    def on_each_device(self, read, net):
        """Return read(net) of each device. MXNet reads the copy of a parameter in the current context."""
        values = []
        for context in self.contexts:
            with context:
                values.append(read(net))
        return values
