"""JAX."""

import collections
import gzip
import json
import os
import pathlib
import re
import tempfile
from functools import partial

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # so that peak memory is the memory in use

import jax
import jax.numpy as jnp
import jaxlib
import numpy

from stele_worker import hlo
from stele_worker.frameworks import base
from stele_worker.profiles import self_times
from stele_worker.ranks import ranks

PRECISIONS = {"fp32": "highest", "tf32": "tensorfloat32", "bf16": "default"}


def tracing():
    """Return options with which the profiler shows the operations of XLA; from 0.6.2 to 0.7.1 it hid them."""
    if not hasattr(jax.profiler, "ProfileOptions"):
        return {}
    chosen = jax.profiler.ProfileOptions()
    chosen.host_tracer_level = 2
    return {"profiler_options": chosen}


def read_profile(folder):
    """Yield a list for each thread of (program, operation, start, duration) in nanoseconds."""
    reader = getattr(jax.profiler, "ProfileData", None)
    if reader is None:  # before JAX 0.7.2: from the file for a viewer, in microseconds
        for path in folder.rglob("*.trace.json.gz"):
            threads = collections.defaultdict(list)
            for event in json.loads(gzip.decompress(path.read_bytes()).decode())["traceEvents"]:
                facts = event.get("args", {})
                if "hlo_op" in facts:
                    times = 1e3 * event["ts"], 1e3 * event["dur"]
                    threads[event["tid"]].append((facts.get("hlo_module"), event["name"]) + times)
            yield from threads.values()
        return
    for path in folder.rglob("*.xplane.pb"):
        for plane in reader.from_file(str(path)).planes:
            for line in plane.lines:
                found = [(event, dict(event.stats)) for event in line.events]
                yield [
                    (facts.get("hlo_module"), event.name, event.start_ns, event.duration_ns)
                    for event, facts in found
                    if "hlo_op" in facts
                ]


def programs():
    """Return the compiled programs in memory, in HLO."""
    executables = jax.devices()[0].client.live_executables()
    return [module.to_string() for executable in executables for module in executable.hlo_modules()]


def take_rows(data, rows):
    return data.at[rows].get(mode="promise_in_bounds")


@partial(jax.jit, static_argnames="layout")
def take_pixels(images, table, layout):
    rows, columns, cut_rows, cut_columns = table
    images = images[jnp.arange(len(images))[:, None, None], rows[:, :, None], columns[:, None, :]]
    if cut_rows is None:
        return images
    return jnp.where((cut_rows[:, :, None] & cut_columns[:, None, :])[..., None], 0, images)


class Framework(base.Framework):
    MODES = ("jit", "as-shipped", "op-by-op", "constants")  # "constants" compiles the weights into the inference
    PARALLEL = "sharded"  # the batch over a mesh of all devices, the weights on each; XLA adds the communication
    HAS_PROFILER = True
    STATISTICS = "all"  # the mean of a divided array is that of the whole batch

    def __init__(self, name):
        super().__init__(name)
        self.mode = "jit"
        self.functions = []  # that jit compiles
        self.compiled_take = None
        self.updated = ()  # by the newest step: without jit, JAX may compute it after the loss

    def configure(self, settings):
        self.mode = settings["mode"]
        if self.mode != "op-by-op":
            self.require_compiler(["JAX_DISABLE_JIT"])
        os.environ["NPROC"] = str(settings["threads"] * ranks.count)  # XLA reads both when it creates its first array
        os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", "")] + self.options(settings)).strip()
        jax.config.update("jax_platforms", settings["device"])
        if settings["precision"] != "default":
            jax.config.update("jax_default_matmul_precision", PRECISIONS[settings["precision"]])
        try:
            jax.devices()
        except (RuntimeError, AssertionError) as error:  # AssertionError if the CUDA plugin is not installed
            message = "JAX {} found no {} device. Install jax[cuda13] on a machine with a GPU, or use device 'cpu'."
            raise RuntimeError(message.format(jax.__version__, settings["device"].upper())) from error
        if len(jax.devices()) < ranks.count:
            message = "JAX {} found {} devices; --devices {} needs as many"
            raise RuntimeError(message.format(jax.__version__, len(jax.devices()), ranks.count))

    def options(self, settings):
        """Return settings for XLA_FLAGS that have no other API. XLA ends the process if a flag is unknown."""
        if not settings["tuned"] and not settings["deterministic"]:
            return []
        if settings["device"] == "cuda":
            return [
                "--xla_gpu_autotune_level={}".format(4 if settings["autotune"] else 0),
                "--xla_gpu_deterministic_ops={}".format("true" if settings["deterministic"] else "false"),
            ]
        if not settings["tuned"]:
            return []  # a CPU is deterministic
        flags = ["--xla_cpu_multi_thread_eigen=false"] if settings["threads"] == 1 else []
        if ranks.count > 1:
            flags.append("--xla_force_host_platform_device_count={}".format(ranks.count))
        # keep convolutions in Eigen: YNNPACK, the default in 0.9.2, takes several times as long for a kernel's
        # gradient. XLA has the flag since 0.8.2
        if self.mode != "as-shipped" and jaxlib.version.__version_info__ >= (0, 8, 2):
            flags.append("--xla_cpu_experimental_ynn_fusion_type=-individual_convolution")
        return flags

    def versions(self):
        device = jax.devices()[0]
        return {
            "jax": jax.__version__,
            "jaxlib": jaxlib.__version__,
            # of CUDA, say; that of a CPU is "cpu", or "<unknown>" in older releases
            "platform": None if device.platform == "cpu" else device.client.platform_version.splitlines()[0],
        }

    def flags(self):
        return {
            "device": jax.devices()[0].device_kind,
            "threads": int(os.environ["NPROC"]),
            "xla_flags": os.environ["XLA_FLAGS"],
            "matmul_precision": jax.config.jax_default_matmul_precision,
            "preallocate": os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"],
            "x64": jax.config.jax_enable_x64,
        }

    def compiled(self, function=None, donate=()):
        """Return a function as the mode executes it: unchanged, or jitted, with the buffers of ``donate`` donated."""
        if function is None:
            return partial(self.compiled, donate=donate)
        if self.mode == "op-by-op":
            return function
        self.functions.append(jax.jit(function, donate_argnums=donate))
        return self.functions[-1]

    def in_force(self):
        """Return how often XLA compiled a step; 0 if the operations run one by one."""
        done = {"compilations": sum(function._cache_size() for function in self.functions)}
        return self.check_mode(done, self.mode == "op-by-op" or done["compilations"] > 0)

    def profile(self, run):
        """Return {operation: (seconds, calls)} during run(): the operations of XLA, with the labels of ``hlo``."""
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder, **tracing()):
                run()
            threads = list(read_profile(pathlib.Path(folder)))
        labels = hlo.labels(programs())
        return self_times(
            [
                (labels.get((program, name)) or hlo.plain(name), start, duration)
                for program, name, start, duration in events
            ]
            for events in threads
        )

    def kernels(self, run):
        """Return {library function or kind of fusion: how often it is in a program}, of the programs in memory."""
        run()
        counts = collections.Counter()
        for program in programs():
            counts.update(re.findall(r'custom_call_target="([^"]+)"|"kind":"(__[^"]+)"', program))
        return {"XLA " + (call or fusion): str(count) for (call, fusion), count in sorted(counts.items())}

    def sharding(self, *axes):
        """Return how an array lies on the devices of ``--devices``: replicated, or with its first axis divided."""
        return jax.sharding.NamedSharding(self.mesh(), jax.sharding.PartitionSpec(*axes))

    def mesh(self):
        return jax.sharding.Mesh(jax.devices()[: ranks.count], ("batch",))

    def replicated(self, tree):
        """Return arrays that every device has, if there are several."""
        return tree if ranks.count == 1 else jax.device_put(tree, self.sharding())

    def put(self, array):
        if array.dtype.names:  # BFLOAT16 of stele_worker.models.inputs
            return self.replicated(jax.lax.bitcast_convert_type(jnp.array(array.view("<u2")), jnp.bfloat16))
        return self.replicated(jnp.array(array))  # copies; on a CPU device_put would share the memory

    def take(self, data, rows):
        ranks.equal_shares(len(rows), ranks.count)
        if self.compiled_take is None:
            options = {} if ranks.count == 1 else {"out_shardings": self.sharding("batch")}
            self.compiled_take = jax.jit(take_rows, **options)
        return self.compiled_take(data, rows)

    def take_pixels(self, images, table, layout):
        return take_pixels(images, table, layout)

    def draw_integers(self, samples, limit, seed):
        return jax.random.randint(jax.random.key(seed), (samples, 1), 0, limit)

    def draw_weight(self, shape, seed):
        """Return what the layers of Flax start from, as an array in the Task's layout."""
        initialise = jax.nn.initializers.lecun_normal(in_axis=1, out_axis=0)
        return numpy.array(initialise(jax.random.key(seed), shape))

    def wait_also_for(self, *arrays):
        """Make ``wait`` wait for what a step has updated, too. A compiled step has it when its loss is ready."""
        self.updated = arrays if self.mode == "op-by-op" else ()

    def wait(self, value):
        jax.block_until_ready((value, self.updated))

    def fetch(self, value):
        return numpy.asarray(value, numpy.float32)

    def copies(self, value):
        """Return the part of a value, or the copy, that each device has, as NumPy arrays."""
        return [numpy.asarray(part.data, numpy.float32) for part in value.addressable_shards]

    def peak_memory(self):
        """Return the bytes of the device that used most; None on a CPU."""
        statistics = [one.memory_stats() for one in jax.local_devices()]
        return max(one["peak_bytes_in_use"] for one in statistics) if all(statistics) else None
