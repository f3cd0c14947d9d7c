"""PaddlePaddle 3."""

import collections
import json
import os
import tempfile

from stele_worker import frameworks

# read when OpenMP is loaded. Paddle sets it to 1 itself where it is not set, and its products have the threads of MKL.
# With both at 2, training of the GRU took 350 ms a step; with 1 and 2, 95 ms. A model of the user has those of the user
if frameworks.tuned:
    os.environ["OMP_NUM_THREADS"] = "1"

import paddle
from paddle import inference

from stele_worker.frameworks import base
from stele_worker.profiles import self_times
from stele_worker.ranks import ranks

# its name was mkldnn until Paddle 3.1
ONEDNN = "onednn" if hasattr(inference.Config, "enable_onednn") else "mkldnn"
KERNELS = ("Operator", "DygraphKernelLaunch", "StaticKernelLaunch", "Kernel")  # categories of events


def name_of_operation(event):
    """Return "conv2d" for "conv2d dygraph[0.2 ms]", "conv2d kernel launch[...]" and "pd_op.conv2d_[...]"."""
    name = event["name"].split("[")[0].split(" ")[0]
    return (name[len("pd_op.") :] if name.startswith("pd_op.") else name).rstrip("_")


class Framework(base.Framework):
    PARALLEL = "processes"  # DataParallel, with ranks as paddle.distributed.launch starts them
    HAS_PROFILER = True
    STATISTICS = "own"  # SyncBatchNorm would exchange them; it needs GPUs
    # inference uses Paddle Inference in the first mode; "as-shipped" runs it eagerly
    MODES = ("dygraph", "as-shipped", "to-static", "cinn")
    STATIC = {"to-static": None, "cinn": "CINN"}  # the backend of paddle.jit.to_static

    def __init__(self, name):
        super().__init__(name)
        self.device = "cpu"
        self.threads = 1
        self.mode = "dygraph"
        self.functions = []  # that to_static converts

    def configure(self, settings):
        self.device, self.threads, self.mode = settings["device"], settings["threads"], settings["mode"]
        if self.mode == "cinn" and not paddle.is_compiled_with_cinn():  # to_static would ignore it without an error
            message = "This wheel of Paddle {} does not contain CINN: install one that does, or use mode 'to-static'"
            raise RuntimeError(message.format(paddle.__version__))
        if settings["precision"] not in ("fp32", "default"):
            reason = "Paddle is supported in precision 'fp32' only, not {!r}: use precision 'fp32'"
            raise RuntimeError(reason.format(settings["precision"]))
        if self.device == "cuda" and not paddle.device.is_compiled_with_cuda():
            advice = "Install paddlepaddle-gpu on a machine with a GPU, or use device 'cpu'."
            raise RuntimeError("Paddle {} was built without CUDA. {}".format(paddle.__version__, advice))
        if ranks.processes > 1:
            self.join_ranks()
        paddle.set_device(self.place())
        paddle.set_flags({"FLAGS_paddle_num_threads": self.threads})
        if self.device == "cuda" and (settings["tuned"] or settings["deterministic"]):
            paddle.set_flags({"FLAGS_cudnn_exhaustive_search": settings["autotune"]})
            paddle.set_flags({"FLAGS_cudnn_deterministic": settings["deterministic"]})
        # a program runs independent branches in any order, and dropout draws in that order
        if settings["deterministic"]:
            paddle.set_flags({"FLAGS_new_executor_serial_run": True})
        paddle.seed(settings["seed"])

    def place(self):
        """Return the name of the device of this process."""
        if self.device == "cpu":
            return "cpu"
        return "gpu:{}".format(ranks.number()) if ranks.processes > 1 else "gpu"

    def join_ranks(self):
        """Connect this rank with the others: NCCL between GPUs, Gloo between processes."""
        first = int(os.environ["MASTER_PORT"])  # only the first rank opens its port
        addresses = ["127.0.0.1:{}".format(first + rank) for rank in range(ranks.processes)]
        os.environ.update(
            PADDLE_TRAINER_ID=str(ranks.number()),
            PADDLE_TRAINERS_NUM=str(ranks.processes),
            PADDLE_TRAINER_ENDPOINTS=",".join(addresses),
            PADDLE_CURRENT_ENDPOINT=addresses[ranks.number()],
            PADDLE_DISTRI_BACKEND="nccl" if self.device == "cuda" else "gloo",
            FLAGS_selected_gpus=str(ranks.number()),
        )
        paddle.set_device(self.place())
        paddle.distributed.init_parallel_env()

    def versions(self):
        cuda = self.device == "cuda"
        return {
            "paddle": paddle.version.full_version,
            "cuda": paddle.version.cuda() if cuda else None,
            "cudnn": paddle.version.cudnn() if cuda else None,
        }

    def flags(self):
        names = ["FLAGS_paddle_num_threads", "FLAGS_use_" + ONEDNN]  # eager mode ignores the second
        if self.device == "cuda":
            names += ["FLAGS_cudnn_exhaustive_search", "FLAGS_cudnn_deterministic"]
        active = {name[len("FLAGS_") :]: value for name, value in paddle.get_flags(names).items()}
        return dict(
            active,
            device=paddle.get_device(),
            threads=int(os.environ["MKL_NUM_THREADS"]),  # of matrix products and convolutions
            openmp_threads=int(os.environ["OMP_NUM_THREADS"]),
            inference_onednn=self.mode == "dygraph" and self.device == "cpu",
            mkl_kernels=os.environ.get("MKL_DEBUG_CPU_TYPE"),
        )

    def compiled(self, function):
        """Return a function of tensors as the mode executes it. It is no lambda: to_static reads its source."""
        if self.mode not in self.STATIC:
            return function
        self.functions.append(paddle.jit.to_static(function, backend=self.STATIC[self.mode], full_graph=True))
        return self.functions[-1]

    def in_force(self):
        """Return how many programs to_static made; 0 in dygraph."""
        done = {"programs": sum(len(function.program_cache) for function in self.functions)}
        return self.check_mode(done, self.mode not in self.STATIC or done["programs"] > 0)

    def profile(self, run):
        """Return {operation: (seconds, calls)} during run()."""
        from paddle import profiler

        targets = [profiler.ProfilerTarget.CPU] + ([profiler.ProfilerTarget.GPU] if self.device == "cuda" else [])
        with tempfile.TemporaryDirectory() as folder:
            recorder = profiler.Profiler(targets=targets)
            recorder.start()
            run()
            recorder.stop()
            path = os.path.join(folder, "profile.json")
            recorder.export(path, format="json")
            with open(path, encoding="utf-8") as file:
                events = json.load(file)["traceEvents"]
        lines = collections.defaultdict(list)
        for event in events:
            # the main thread only waits in the gradient of a compiled function
            if event.get("cat") in KERNELS and not event["name"].startswith("Global_Dy2StGradNode"):
                line = lines[event["pid"], event["tid"]]
                line.append((name_of_operation(event), 1e3 * float(event["ts"]), 1e3 * float(event["dur"])))
        return self_times(lines.values())

    def put(self, array):
        if array.dtype.names:  # BFLOAT16 of stele_worker.models.inputs; Paddle reads uint16 as bfloat16
            return paddle.to_tensor(array.view("<u2"))
        if array.dtype == "int32":  # labels and tokens: paddle.nn documents int64
            array = array.astype("int64")
        return paddle.to_tensor(array)

    def take(self, data, rows):
        return paddle.gather(data, paddle.to_tensor(rows))

    def draw_integers(self, samples, limit, seed):
        paddle.seed(seed)  # Paddle has no other generator than its global one
        return paddle.randint(0, limit, [samples, 1])

    def draw_weight(self, shape, seed):
        """Return what Paddle's layers start from, as an array in the Task's layout."""
        paddle.seed(seed)
        if len(shape) == 2:
            return paddle.nn.Linear(shape[1], shape[0]).weight.numpy().T
        return paddle.nn.Conv2D(shape[1], shape[0], shape[2:]).weight.numpy()

    def on_device(self, value):
        """Return a tensor as it is, an array as ``put`` copies it."""
        return value if paddle.is_tensor(value) else self.put(value)

    def take_pixels(self, images, table, layout):
        rows, columns, *cut = [None if one is None else self.on_device(one) for one in table]
        samples = paddle.arange(images.shape[0]).reshape([-1, 1, 1])
        images = images.transpose([0, 2, 3, 1]) if layout == "NCHW" else images
        images = images[samples, rows.unsqueeze(2), columns.unsqueeze(1)]
        if cut[0] is not None:
            squares = cut[0].unsqueeze(2) & cut[1].unsqueeze(1)
            images = paddle.where(squares.unsqueeze(3), paddle.zeros([1]), images)
        return images.transpose([0, 3, 1, 2]) if layout == "NCHW" else images

    def wait(self, value):
        if self.device == "cuda":
            paddle.device.synchronize()  # on a CPU a call returns after its computation

    def fetch(self, value):
        return value.astype("float32").numpy()

    def forget_peak_memory(self):
        if self.device == "cuda":
            paddle.device.cuda.reset_max_memory_allocated()

    def peak_memory(self):
        return paddle.device.max_memory_allocated() if self.device == "cuda" else None
