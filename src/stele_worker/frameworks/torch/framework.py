"""PyTorch."""

import atexit
import os

import torch

from stele_worker.frameworks import base
from stele_worker.ranks import ranks

NOT_REPLAYED = {"max-autotune": {"mode": "max-autotune-no-cudagraphs"}, "graphs": {}}  # without CUDA graphs


class Framework(base.Framework):
    PARALLEL = "processes"  # DistributedDataParallel, or FSDP2 in its mode; with ranks as torchrun starts them
    STATISTICS = "own"  # SyncBatchNorm would exchange them; it needs GPUs
    # the arguments of torch.compile; eager does not compile. "as-shipped" is eager without tuning, "frozen" folds the
    # weights into the compiled inference, "fsdp" gives each rank a part of each parameter
    MODES = {
        "eager": None,
        "as-shipped": None,
        "compile": {},
        "max-autotune": {"mode": "max-autotune"},
        "graphs": {"mode": "reduce-overhead"},  # CUDA graphs
        "frozen": {},
        "fsdp": None,
    }
    HAS_PROFILER = True
    # what the profiler shows around the Python code of torch.optim.Optimizer
    ANNOTATIONS = ("Optimizer.step#", "Optimizer.zero_grad#")

    def __init__(self, name):
        super().__init__(name)
        # whether it is an error that PyTorch executes a function eagerly after too many recompilations
        self.strict = True
        self.device = torch.device("cpu")
        self.mode = "eager"

    def configure(self, settings):
        self.device, self.mode = torch.device(settings["device"]), settings["mode"]
        if self.MODES[self.mode] is not None:
            self.require_compiler(["TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"])
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise RuntimeError("PyTorch {} found no CUDA device: use device 'cpu'".format(torch.__version__))
        if ranks.processes > 1:
            self.join_ranks()
        torch.set_num_threads(settings["threads"])
        torch.manual_seed(settings["seed"])
        if settings["precision"] != "default":
            tf32 = settings["precision"] == "tf32"
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.backends.cudnn.allow_tf32 = tf32
        if settings["tuned"]:
            torch.backends.cudnn.benchmark = settings["autotune"]
        if settings["deterministic"]:
            torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = False, True
            os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
            torch.use_deterministic_algorithms(True)  # off by default; the call imports the compiler for a second

    def join_ranks(self):
        """Take a device of this rank, and connect it with the others: NCCL between GPUs, Gloo between processes."""
        if self.device.type == "cuda":
            if torch.cuda.device_count() < ranks.processes:
                message = "PyTorch found {} CUDA devices; --devices {} needs as many"
                raise RuntimeError(message.format(torch.cuda.device_count(), ranks.processes))
            self.device = torch.device("cuda", ranks.number())
            torch.cuda.set_device(self.device)
        torch.distributed.init_process_group("nccl" if self.device.type == "cuda" else "gloo")
        atexit.register(torch.distributed.destroy_process_group)

    def versions(self):
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": str(torch.backends.cudnn.version()) if self.device.type == "cuda" else None,
        }

    def flags(self):
        has_capability = hasattr(torch.backends, "cpu")  # from 2.0 on
        return {
            "device": torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu",
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
            "matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
            "cudnn_tf32": torch.backends.cudnn.allow_tf32,
            "cudnn_autotune": torch.backends.cudnn.benchmark,
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "onednn": getattr(torch.backends.mkldnn, "enabled", torch.backends.mkldnn.is_available()),
            "cpu_capability": torch.backends.cpu.get_cpu_capability() if has_capability else None,
        }

    def compiled(self, function, *, replayed=True):
        """Return a function of tensors as the mode executes it.

        A function that changes its inputs is not ``replayed`` by CUDA graphs: PyTorch may crash (pytorch issue 192748).
        """
        arguments = self.MODES[self.mode]
        if arguments is None:
            return function
        from torch._dynamo import config as dynamo
        from torch._inductor import config as inductor

        # on a CPU, products are searched only if their weights are constants
        inductor.freezing = self.mode == "frozen" or (self.mode == "max-autotune" and self.device.type == "cpu")
        if hasattr(dynamo, "fail_on_recompile_limit_hit"):  # from 2.6 on
            dynamo.fail_on_recompile_limit_hit = self.strict
        return torch.compile(function, **(arguments if replayed else NOT_REPLAYED.get(self.mode, arguments)))

    def in_force(self):
        """Return what torch.compile did: graphs, breaks, recompilations, and what it left eager; {} in eager mode."""
        if self.MODES[self.mode] is None:
            return {}
        from torch._dynamo.convert_frame import FRAME_COMPILE_COUNTER  # compilations of each frame
        from torch._dynamo.utils import counters

        done = {
            "graphs": counters["stats"]["unique_graphs"],
            "graph_breaks": sum(counters["graph_break"].values()),
            "recompilations": sum(FRAME_COMPILE_COUNTER.values()) - len(FRAME_COMPILE_COUNTER),
            "eager_functions": counters["frames"]["total"] - counters["frames"]["ok"],  # such as that of a GRU
        }
        if self.mode == "graphs":
            done["skipped_graphs"] = counters["inductor"]["cudagraph_skips"]
        return self.check_mode(done, done["graphs"] > 0)

    def channels_first(self, dtype):
        """Return whether channels first are faster: for IEEE float32 on a GPU. See pytorch issue 44943."""
        exact = dtype == "float32" and not torch.backends.cudnn.allow_tf32
        return self.device.type == "cuda" and exact

    def is_sharded(self):
        """Return whether FSDP2 trains: each rank has a part of each parameter, and a gradient is the mean of all."""
        return self.mode == "fsdp" and ranks.processes > 1

    def profile(self, run):
        """Return {operation: (seconds, calls)} during run(). An operation counts without those that it calls."""
        from torch.profiler import ProfilerActivity
        from torch.profiler import profile as record

        cuda = self.device.type == "cuda"
        with record(activities=[ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if cuda else [])) as profiler:
            run()
        # PyTorch called it cuda until 2.3
        names = ("self_device_time_total", "self_cuda_time_total") if cuda else ("self_cpu_time_total",)
        return {
            event.key: (1e-6 * next(getattr(event, name) for name in names if hasattr(event, name)), event.count)
            for event in profiler.key_averages()
        }

    def put(self, array):
        if array.dtype.names:  # BFLOAT16 of stele_worker.models.inputs
            return torch.from_numpy(array.view("<i2")).view(torch.bfloat16).to(self.device)
        tensor = torch.from_numpy(array)
        if tensor.dtype == torch.int32:  # labels and tokens: cross_entropy takes only int64
            tensor = tensor.long()
        return tensor.to(self.device)

    def take(self, data, rows):
        return data[torch.from_numpy(rows).to(self.device)]

    def draw_integers(self, samples, limit, seed):
        generator = torch.Generator(self.device).manual_seed(seed)
        return torch.randint(limit, (samples, 1), generator=generator, device=self.device)

    def draw_weight(self, shape, seed):
        """Return what PyTorch's layers start from, as an array in the Task's layout."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return torch.nn.init.kaiming_uniform_(torch.empty(shape), a=5**0.5).numpy()

    def take_pixels(self, images, table, layout):
        rows, columns, *cut = [None if one is None else torch.as_tensor(one, device=self.device) for one in table]
        first = layout == "NCHW"
        # one gather over flat pixels is several times faster on a CPU than an index for each axis
        flat = images.flatten(2) if first else images.flatten(1, 2)
        pixels = (rows.long()[:, :, None] * images.shape[3 if first else 2] + columns.long()[:, None, :]).flatten(1)
        taken = torch.take_along_dim(flat, pixels.unsqueeze(1 if first else 2), 2 if first else 1)
        taken = taken.view(images.shape)
        if cut[0] is not None:
            taken.masked_fill_((cut[0][:, :, None] & cut[1][:, None, :]).unsqueeze(1 if first else 3), 0)
        return taken

    def wait(self, value):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def fetch(self, value):
        value = value.detach()
        if hasattr(value, "full_tensor"):  # FSDP2: all ranks exchange their parts
            value = value.full_tensor()
        return value.float().cpu().numpy()

    def tracked(self, value):
        return value.requires_grad

    def forget_peak_memory(self):
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()

    def peak_memory(self):
        return torch.cuda.max_memory_allocated() if self.device.type == "cuda" else None
