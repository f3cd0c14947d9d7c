"""JAX."""

import collections
import gzip
import json
import os
import pathlib
import re
import tempfile
from functools import lru_cache, partial
from typing import Any, NamedTuple

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # so that peak memory is the memory in use

import jax
import jax.numpy as jnp
import jaxlib
import numpy

from stele_worker import hlo, modes, ranks
from stele_worker.profiles import self_times

MODES = ("jit", "as-shipped", "op-by-op", "constants")  # "constants" compiles the weights into the inference
PRECISIONS = {"fp32": "highest", "tf32": "tensorfloat32", "bf16": "default"}
PARALLEL = "sharded"  # the batch over a mesh of all devices, the weights on each; XLA adds the communication
STATISTICS = "all"  # the mean of a divided array is that of the whole batch
mode = "jit"
functions = []  # that jit compiles
updated = ()  # by the newest step: without jit, JAX may compute it after the loss


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings."""
    global mode
    mode = settings["mode"]
    if mode != "op-by-op":
        modes.require_compiler(mode, ["JAX_DISABLE_JIT"])
    os.environ["NPROC"] = str(
        settings["threads"] * ranks.count
    )  # XLA reads both when it creates its first array
    os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", "")] + options(settings)).strip()
    jax.config.update("jax_platforms", settings["device"])
    if settings["precision"] != "default":
        jax.config.update("jax_default_matmul_precision", PRECISIONS[settings["precision"]])
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # AssertionError if the CUDA plugin is not installed
        message = (
            "JAX {} found no {} device. Install jax[cuda13] on a machine with a GPU, or use device 'cpu'."
        )
        raise RuntimeError(message.format(jax.__version__, settings["device"].upper())) from error
    if len(jax.devices()) < ranks.count:
        message = "JAX {} found {} devices; --devices {} needs as many"
        raise RuntimeError(message.format(jax.__version__, len(jax.devices()), ranks.count))


def options(settings):
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
    # keep convolutions in Eigen: YNNPACK, the default in 0.9.2, takes several times as long for a kernel's gradient
    if mode != "as-shipped" and library_contains(b"INDIVIDUAL_CONVOLUTION"):
        flags.append("--xla_cpu_experimental_ynn_fusion_type=-individual_convolution")
    return flags


def library_contains(word):
    """Return whether XLA's library contains ``word``. Reading its 300 MB at once would raise the peak memory."""
    for path in pathlib.Path(jaxlib.__file__).parent.glob("libjax_common.*"):
        with path.open("rb") as library:
            last = b""
            for piece in iter(lambda: library.read(2**20), b""):
                if word in last + piece:
                    return True
                last = piece[-len(word) :]
    return False


def versions():
    device = jax.devices()[0]
    return {
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        # of CUDA, say; that of a CPU is "cpu", or "<unknown>" in older releases
        "platform": None if device.platform == "cpu" else device.client.platform_version.splitlines()[0],
    }


def flags():
    return {
        "device": jax.devices()[0].device_kind,
        "threads": int(os.environ["NPROC"]),
        "xla_flags": os.environ["XLA_FLAGS"],
        "matmul_precision": jax.config.jax_default_matmul_precision,
        "preallocate": os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"],
        "x64": jax.config.jax_enable_x64,
    }


def compiled(function=None, donate=()):
    """Return a function as the mode executes it: jitted, with the buffers of some arguments donated; or unchanged."""
    if function is None:
        return partial(compiled, donate=donate)
    if mode == "op-by-op":
        return function
    functions.append(jax.jit(function, donate_argnums=donate))
    return functions[-1]


def in_force():
    """Return how often XLA compiled a step; 0 if the operations run one by one."""
    done = {"compilations": sum(function._cache_size() for function in functions)}
    return modes.check(mode, done, mode == "op-by-op" or done["compilations"] > 0)


def gradients(recipe, net, task):
    """Return run(*inputs, y) -> (loss, {parameter: gradient})."""
    compute = compiled(jax.value_and_grad(recipe.loss(net, task), has_aux=True))

    def run(*arrays):
        (value, _), grads = compute(*replicated(recipe.parts(net, task)), *arrays)
        return value, grads

    return run


def inference_step(recipe, net, task):
    """Return step(*inputs) -> logits or features."""
    if mode == "constants":
        return compiled(lambda *inputs: recipe.predict(net, task, *inputs))
    run = compiled(lambda net, *inputs: recipe.predict(net, task, *inputs))
    return lambda *inputs: run(net, *inputs)


def dropout(x, rate, key):
    """Drop numbers out, and scale the others up; ``key`` is None in inference."""
    if key is None or rate == 0:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


class Optimiser(NamedTuple):
    """start(weights) -> slots; update(slots, weights, gradients) -> (weights, slots)."""

    start: Any
    update: Any


def sgd(task):
    """Return SGD with the learning rate outside the velocity."""

    def update(velocity, weights, grads):
        velocity = jax.tree.map(lambda v, g: task.momentum * v + g, velocity, grads)
        return jax.tree.map(lambda w, v: w - task.learning_rate * v, weights, velocity), velocity

    return Optimiser(lambda weights: jax.tree.map(jnp.zeros_like, weights), update)


def adam(task):
    """Return Adam with epsilon outside the root and both moments bias-corrected."""

    def start(weights):
        return jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights), jnp.zeros(())

    def update(slots, weights, grads):
        mean, square, count = slots
        count = count + 1
        mean = jax.tree.map(lambda m, g: task.beta1 * m + (1 - task.beta1) * g, mean, grads)
        square = jax.tree.map(lambda s, g: task.beta2 * s + (1 - task.beta2) * g * g, square, grads)

        def update_weight(weight, m, s):
            m = m / (1 - task.beta1**count)
            s = s / (1 - task.beta2**count)
            return weight - task.learning_rate * m / (jnp.sqrt(s) + task.epsilon)

        return jax.tree.map(update_weight, weights, mean, square), (mean, square, count)

    return Optimiser(start, update)


def make_training_step(loss, parts, optimiser, keep, finish=lambda weights, state: state):
    """Return step(*inputs, y) -> value. loss(weights, state, *inputs, y) returns (value, new state).

    ``parts`` are the first weights and state; ``keep(weights, state)`` receives them after each step. finish(weights,
    state) returns the state of the next step, from the updated weights.
    """
    weights, state = replicated(parts)
    slots = replicated(optimiser.start(weights))

    def compute(weights, slots, state, *arrays):
        (value, state), grads = jax.value_and_grad(loss, has_aux=True)(weights, state, *arrays)
        weights, slots = optimiser.update(slots, weights, grads)
        return weights, slots, finish(weights, state), value

    update = compiled_update(compute, 3, weights)

    def step(*arrays):
        nonlocal weights, slots, state
        weights, slots, state, value = update(weights, slots, state, *arrays)
        wait_also_for(weights, slots, state)
        keep(weights, state)
        return value

    def restore(saved):
        nonlocal weights, slots, state
        weights, slots, state = from_arrays((weights, slots, state), saved)
        keep(weights, state)

    step.state, step.restore = lambda: to_arrays((weights, slots, state)), restore
    add_communication(step, update)
    return step


def compiled_update(compute, kept, weights):
    """Return a compiled ``compute``. Its first ``kept`` arguments are on every device, and their buffers are donated.

    On several devices the other arguments are divided, and it has a ``communication``, which can be left out.
    """
    donated = tuple(range(kept))
    update = compiled(lambda *arrays: kept_replicated(compute(*arrays)), donate=donated)
    if ranks.count == 1 or not hasattr(jax, "shard_map"):
        return update
    communication = Communication(weights)
    apart = jax.jit(computed_apart(compute, kept), donate_argnums=donated)

    def either(*arrays):
        return (update if communication.exchanges else apart)(*arrays)

    either.communication = lambda: communication
    return either


def computed_apart(compute, kept):
    """Return ``compute`` as each device does it with its part of the batch, without the sums over the devices."""
    whole, part = jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec("batch")

    def run(*arrays):
        given = [whole] * kept + [part] * (len(arrays) - kept)
        return jax.shard_map(compute, mesh=mesh(), in_specs=tuple(given), out_specs=whole, check_vma=False)(
            *arrays
        )

    return run


def add_communication(step, update):
    """Let ``step`` leave out the communication of its ``update``, if it has any."""
    if hasattr(update, "communication"):
        step.communication = update.communication


class Communication:
    """The sum of the gradients over the devices. A step can leave it out, and it can be done alone.

    ``exchanges`` says whether the next step has it.
    """

    def __init__(self, weights):
        self.exchanges, self.zeros = True, None
        self.shapes = jax.tree.map(lambda weight: jax.ShapeDtypeStruct(weight.shape, weight.dtype), weights)
        self.add = jax.jit(computed_apart(lambda grads: jax.lax.psum(grads, "batch"), kept=1))

    def alone(self):
        """Exchange as many numbers as a step does."""
        if self.zeros is None:
            self.zeros = replicated(jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), self.shapes))
        return self.add(self.zeros)

    def meet(self):
        """Return at once: one process begins for all devices."""


def is_key(leaf):
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def to_arrays(tree):
    """Return the leaves of a tree as NumPy arrays, named by their position."""
    leaves = [jax.random.key_data(leaf) if is_key(leaf) else leaf for leaf in jax.tree.leaves(tree)]
    return {str(number): numpy.asarray(leaf) for number, leaf in enumerate(leaves)}


def from_arrays(tree, arrays):
    """Return a tree like ``tree`` with the leaves that ``to_arrays`` named."""
    leaves, structure = jax.tree.flatten(tree)
    saved = [jnp.array(arrays[str(number)]) for number in range(len(leaves))]
    pairs = zip(leaves, saved)
    return structure.unflatten(
        [
            jax.random.wrap_key_data(new, impl=jax.random.key_impl(old)) if is_key(old) else new
            for old, new in pairs
        ]
    )


def profile(run):
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


def kernels(run):
    """Return {library function or kind of fusion: how often it is in a program}, of the compiled programs in memory."""
    run()
    counts = collections.Counter()
    for program in programs():
        counts.update(re.findall(r'custom_call_target="([^"]+)"|"kind":"(__[^"]+)"', program))
    return {"XLA " + (call or fusion): str(count) for (call, fusion), count in sorted(counts.items())}


def programs():
    """Return the compiled programs in memory, in HLO."""
    executables = jax.devices()[0].client.live_executables()
    return [module.to_string() for executable in executables for module in executable.hlo_modules()]


def on_gpu():
    return jax.default_backend() == "gpu"


def sharding(*axes):
    """Return how an array lies on the devices of ``--devices``: replicated, or with its first axis divided."""
    return jax.sharding.NamedSharding(mesh(), jax.sharding.PartitionSpec(*axes))


def mesh():
    return jax.sharding.Mesh(jax.devices()[: ranks.count], ("batch",))


def replicated(tree):
    """Return arrays that every device has, if there are several."""
    return tree if ranks.count == 1 else jax.device_put(tree, sharding())


def kept_replicated(tree):
    """Make a compiled function return arrays that every device has; else its second call would compile again."""
    return tree if ranks.count == 1 else jax.lax.with_sharding_constraint(tree, sharding())


def put(array):
    if array.dtype.names:  # BFLOAT16 of stele_worker.models.inputs
        return replicated(jax.lax.bitcast_convert_type(jnp.array(array.view("<u2")), jnp.bfloat16))
    return replicated(jnp.array(array))  # copies; on a CPU device_put would share the memory


def take_rows(data, rows):
    return data.at[rows].get(mode="promise_in_bounds")


@lru_cache(maxsize=None)
def compiled_take():
    return jax.jit(take_rows) if ranks.count == 1 else jax.jit(take_rows, out_shardings=sharding("batch"))


def take(data, rows):
    ranks.equal_shares(len(rows), ranks.count)
    return compiled_take()(data, rows)


def draw_integers(samples, limit, seed):
    """Return random integers below ``limit``, of shape (samples, 1), on the device."""
    return jax.random.randint(jax.random.key(seed), (samples, 1), 0, limit)


def draw_weight(shape, seed):
    """Return what the layers of Flax start from, as an array in the Task's layout."""
    initialise = jax.nn.initializers.lecun_normal(in_axis=1, out_axis=0)
    return numpy.array(initialise(jax.random.key(seed), shape))


@partial(jax.jit, static_argnames="layout")
def take_pixels(images, table, layout):
    """Return the augmented images of an epoch: see ``stele_worker.tasks.augmentation``."""
    rows, columns, cut_rows, cut_columns = table
    images = images[jnp.arange(len(images))[:, None, None], rows[:, :, None], columns[:, None, :]]
    if cut_rows is None:
        return images
    return jnp.where((cut_rows[:, :, None] & cut_columns[:, None, :])[..., None], 0, images)


def wait_also_for(*arrays):
    """Make ``wait`` wait for what a step has updated, too. A compiled step has computed it when its loss is ready."""
    global updated
    updated = arrays if mode == "op-by-op" else ()


def wait(value):
    jax.block_until_ready((value, updated))


def fetch(value):
    return numpy.asarray(value, numpy.float32)


def copies(value):
    """Return the part of a value, or the copy, that each device has, as NumPy arrays."""
    return [numpy.asarray(part.data, numpy.float32) for part in value.addressable_shards]


def peak_memory():
    """Return the bytes of the device that used most; None on a CPU."""
    statistics = [one.memory_stats() for one in jax.local_devices()]
    return max(one["peak_bytes_in_use"] for one in statistics) if all(statistics) else None
