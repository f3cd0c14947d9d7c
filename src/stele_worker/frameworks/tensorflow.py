"""TensorFlow 2."""

import os
import pathlib
import re
import tempfile
from functools import partial

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow reads the level of warnings at import

import numpy
import tensorflow as tf
from tensorflow.python.framework.config import is_op_determinism_enabled  # the public API can only enable it
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from stele_worker import modes, ranks
from stele_worker.profiles import self_times

# "graph" compiles with XLA where the recipe is faster with it; "function" never does, "xla" always
MODES = ("graph", "function", "eager", "xla", "frozen")
PARALLEL = "sharded"  # MirroredStrategy: each device has a copy of the variables and a part of the batch
STATISTICS = "own"
device = "cpu"
mode = "graph"
functions = []  # that tf.function traces
strategy = None  # of several devices
scope = None  # a reference, because the scope ends when it is collected


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings."""
    global device, mode
    device, mode = settings["device"], settings["mode"]
    gpus = tf.config.list_physical_devices("GPU")
    if device == "cuda" and not gpus:
        advice = "Install tensorflow[and-cuda] on a machine with a GPU, or use device 'cpu'."
        raise RuntimeError("TensorFlow {} found no CUDA device. {}".format(tf.__version__, advice))
    if device == "cuda" and len(gpus) < ranks.count:
        message = "TensorFlow {} found {} CUDA devices; --devices {} needs as many"
        raise RuntimeError(message.format(tf.__version__, len(gpus), ranks.count))
    tf.config.set_visible_devices(gpus[: ranks.count] if device == "cuda" else [], "GPU")
    for gpu in tf.config.get_visible_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    threads = settings["threads"] * ranks.count  # all devices of the processor share these threads
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    if settings["precision"] != "default":
        tf.config.experimental.enable_tensor_float_32_execution(settings["precision"] == "tf32")
    if settings["tuned"] or settings["deterministic"]:  # TensorFlow reads it at the first convolution
        os.environ["TF_CUDNN_USE_AUTOTUNE"] = "1" if settings["autotune"] else "0"
    tf.random.set_seed(settings["seed"])
    # XLA is deterministic on a CPU, but refuses the gradient of max pooling if determinism is required
    if settings["deterministic"] and not (mode == "xla" and device == "cpu"):
        tf.config.experimental.enable_op_determinism()
    if ranks.count > 1:
        mirror_variables()


def mirror_variables():
    """Give each device a copy of the variables that are created from now on."""
    global strategy, scope
    if device == "cpu":
        [processor] = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(
            processor, [tf.config.LogicalDeviceConfiguration()] * ranks.count
        )
    replicas = tf.config.list_logical_devices("GPU" if device == "cuda" else "CPU")
    strategy = tf.distribute.MirroredStrategy([replica.name for replica in replicas])
    tf.distribute.experimental_set_strategy(strategy)
    scope = tf.variable_creator_scope(create_variable)
    scope.__enter__()


def create_variable(create, **options):
    """Create a variable; if it is a running statistic, one that each device changes and that is read as the mean."""
    if "running_" in (options.get("name") or ""):
        options["synchronization"] = tf.VariableSynchronization.ON_READ
        options["aggregation"] = tf.VariableAggregation.MEAN
    return create(**options)


def versions():
    build = tf.sysconfig.get_build_info()
    return {
        "tensorflow": tf.__version__,
        "cuda": build.get("cuda_version"),
        "cudnn": build.get("cudnn_version"),
    }


def flags():
    gpus = tf.config.get_visible_devices("GPU")
    return {
        "device": tf.config.experimental.get_device_details(gpus[0])["device_name"] if gpus else "cpu",
        "threads": tf.config.threading.get_intra_op_parallelism_threads(),
        "interop_threads": tf.config.threading.get_inter_op_parallelism_threads(),
        "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
        "TF_CUDNN_USE_AUTOTUNE": os.environ.get(
            "TF_CUDNN_USE_AUTOTUNE", "default"
        ),  # TensorFlow does not say
        "deterministic": is_op_determinism_enabled(),
        "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
        "memory_growth": [tf.config.experimental.get_memory_growth(gpu) for gpu in gpus],
    }


def compiled(function=None, xla=False, autograph=False):
    """Return a function as the mode executes it. ``xla``: whether it is faster with XLA."""
    if function is None:
        return partial(compiled, xla=xla)
    if mode == "eager":
        return function
    # XLA compiles for one device: of several it compiles what each computes alone
    jit = strategy is None and uses_jit(xla)
    functions.append(tf.function(function, autograph=autograph, jit_compile=jit))
    return functions[-1]


def uses_jit(xla):
    """Return whether XLA compiles a function in this mode, if ``xla`` says whether it is faster with XLA."""
    return mode == "xla" or (xla and mode not in ("function", "eager"))


def for_each_device(function, xla):
    """Return a function as each of several devices executes it: compiled by XLA if one device would use XLA."""
    if strategy is None or not uses_jit(xla):
        return function
    jitted = tf.function(function, autograph=False, jit_compile=True)
    return lambda *arrays: jitted(*arrays)  # strategy.run would make one function of XLA for all devices


def in_force():
    """Return how often tf.function traced a step; 0 in eager mode."""
    done = {"traces": sum(function.experimental_get_tracing_count() for function in functions)}
    return modes.check(mode, done, mode == "eager" or done["traces"] > 0)


def gradients(recipe, net, task):
    """Return run(*inputs, y) -> (loss, {parameter: gradient})."""
    xla = uses_xla(recipe, "train")
    differentiate = differentiated_on_all_devices(recipe.loss(net, task), recipe.trainable(net), xla)
    return compiled(lambda *arrays: first_copies(differentiate(*arrays)), xla=xla)


def uses_xla(recipe, phase):
    """Return whether a recipe is faster with XLA, and XLA can compile it."""
    return phase in getattr(recipe, "XLA", ()) and not (hasattr(recipe, "CUDNN") and uses_cudnn())


def uses_cudnn():
    """Return whether recurrent layers use cuDNN, which XLA cannot compile."""
    return device == "cuda" and mode != "xla"


def differentiated(loss, weights):
    """Return run(*inputs, y) -> (loss, {parameter: gradient}), not compiled."""
    loss = in_shards(loss)

    def run(*arrays):
        with tf.GradientTape() as tape:
            value = loss(*arrays)
        grads = tape.gradient(value, weights)
        # the gradient of an embedding has only some rows, but the optimiser updates all
        return value, {name: tf.convert_to_tensor(grad) for name, grad in grads.items()}

    return run


def in_shards(loss):
    """Return a loss that computes a batch in as many shards as are configured, as a reference for several devices."""
    return ranks.mean_over_shards(loss, tf.split)


def differentiated_on_all_devices(loss, weights, xla):
    """Return run as ``differentiated``; with several devices each has the means of loss and gradients over all."""
    differentiate = for_each_device(differentiated(loss, weights), xla)
    return all_reduced(differentiate, tf.distribute.ReduceOp.MEAN)


def all_reduced(function, operation):
    """Return a function whose result each device has: the mean or the sum of what ``function`` returns on them."""
    if strategy is None:
        return function

    def run(*arrays):
        return tf.distribute.get_replica_context().all_reduce(operation, function(*arrays))

    return on_each_part(run)


def on_each_part(function):
    """Return a function that each device executes with its part of the arrays; the result has a value of each."""
    return lambda *arrays: strategy.run(function, arrays)


def first_copies(values):
    """Return the copies of nested values on the first of several devices."""
    return tf.nest.map_structure(lambda value: local(value)[0], values)


def local(value):
    """Return the copies of a value on the devices, or the only one."""
    return (value,) if strategy is None else strategy.experimental_local_results(value)


def on_all_devices(update, weights):
    """Return an update that each device applies to its copies of the variables."""
    if strategy is None:
        return update
    anchor = next(iter(weights.values()))  # names the devices

    def run(grads):
        strategy.extended.update(anchor, lambda _, own: update(own), args=(grads,))

    return run


def make_training_step(loss, weights, update, xla=False):
    """Return step(*inputs, y) -> loss, which gives the gradients to ``update``.

    Both have in ``variables`` what they change beside the weights. A loss without it makes a step that cannot continue.
    """
    apply = on_all_devices(update, weights)

    def make_step(differentiate):
        @compiled(xla=xla)
        def step(*arrays):
            value, grads = differentiate(*arrays)
            apply(grads)
            return first_copies(value)

        return step

    step = make_step(differentiated_on_all_devices(loss, weights, xla))
    if strategy is not None:
        without = make_step(on_each_part(for_each_device(differentiated(loss, weights), xla)))
        step = with_communication(step, without, weights)
    if hasattr(loss, "variables"):
        add_state(step, (weights, loss.variables, update.variables))
    return step


def with_communication(step, without, weights):
    """Return a step of several devices that can leave its communication out, for which it calls ``without``."""
    communication = Communication(weights)

    def either(*arrays):
        return step(*arrays) if communication.exchanges else without(*arrays)

    either.communication = lambda: communication
    return either


class Communication:
    """The mean of loss and gradients over the devices. A step can leave it out, and it can be done alone.

    ``exchanges`` says whether the next step has it.
    """

    def __init__(self, weights):
        self.exchanges, self.weights, self.zeros = True, weights, None
        self.run = compiled(all_reduced(lambda *values: values, tf.distribute.ReduceOp.MEAN))

    def alone(self):
        """Exchange as many numbers as a step does."""
        if self.zeros is None:
            self.zeros = [zeros_on_devices(())] + [
                zeros_on_devices(weight.shape) for weight in self.weights.values()
            ]
        return self.run(*self.zeros)

    def meet(self):
        """Return at once: one process begins for all devices."""


def add_state(step, variables):
    """Give ``step`` a state, which consists of ``variables``: see ``stele_worker.recipes``."""
    variables = tf.nest.flatten(variables)

    def restore(state):
        for number, variable in enumerate(variables):
            variable.assign(state[str(number)])

    step.state = lambda: {str(number): variable.numpy() for number, variable in enumerate(variables)}
    step.restore = restore


def zeros_like(weights):
    return {name: tf.Variable(tf.zeros_like(weight)) for name, weight in weights.items()}


def dropout(x, rate, random):
    """Drop numbers out, and scale the others up; ``random`` is a generator, or None in inference."""
    if random is None or rate == 0:
        return x
    return tf.nn.experimental.general_dropout(x, rate, uniform_sampler=random.uniform)


def make_random(task):
    return tf.random.Generator.from_seed(task.seed, alg="philox")  # draws faster than tf.nn.dropout


def sgd(task, weights):
    """Return update(gradients): SGD with the learning rate outside the velocity."""
    velocity = zeros_like(weights)

    def update(grads):
        for name, weight in weights.items():
            velocity[name].assign(task.momentum * velocity[name] + grads[name])
            weight.assign_sub(task.learning_rate * velocity[name])

    update.variables = velocity
    return update


def adam(task, weights):
    """Return update(gradients): Adam with epsilon outside the root and both moments bias-corrected."""
    mean, square, count = zeros_like(weights), zeros_like(weights), tf.Variable(0.0)

    def update(grads):
        count.assign_add(1.0)
        for name, weight in weights.items():
            mean[name].assign(task.beta1 * mean[name] + (1 - task.beta1) * grads[name])
            square[name].assign(task.beta2 * square[name] + (1 - task.beta2) * grads[name] * grads[name])
            m = mean[name] / (1 - task.beta1**count)
            s = square[name] / (1 - task.beta2**count)
            weight.assign_sub(task.learning_rate * m / (tf.sqrt(s) + task.epsilon))

    update.variables = mean, square, count
    return update


def inference_step(recipe, net, task):
    """Return step(*inputs) -> logits or features."""
    xla = uses_xla(recipe, "infer")
    step = compiled(inferred_on_all_devices(lambda *inputs: recipe.predict(net, task, *inputs), xla), xla=xla)
    return step if mode != "frozen" else frozen(step, uses_jit(xla))


def inferred_on_all_devices(predict, xla):
    """Return run(*inputs) -> outputs, of which each device computes its part."""
    if strategy is None:
        return predict
    run = for_each_device(predict, xla)
    return lambda *inputs: strategy.run(run, inputs)


def frozen(step, jit):
    """Return a function with its variables as constants, made at the first call with inputs of these shapes."""
    made = {}

    def run(*batch):
        shapes = tuple(tuple(array.shape) for array in batch)
        if shapes not in made:
            function = step.get_concrete_function(*batch)
            made[shapes] = freeze(function, jit), function.structured_outputs
        run_frozen, structure = made[shapes]
        return tf.nest.pack_sequence_as(structure, list(run_frozen(*batch)))

    return run


def freeze(function, jit):
    """Return a traced function with its variables as constants; ``jit``: compiled by XLA, which the copy forgets."""
    constant = convert_variables_to_constants_v2(function, lower_control_flow=not jit)
    if not jit:
        return constant
    return tf.function(lambda *batch: constant(*batch), autograph=False, jit_compile=True)


def profile(run):
    """Return {operation: (seconds, calls)} during run()."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        try:
            run()
        finally:
            tf.profiler.experimental.stop()
        files = [
            xplane_pb2.XSpace.FromString(path.read_bytes())
            for path in pathlib.Path(folder).rglob("*.xplane.pb")
        ]
    return self_times(
        operations(plane, line) for file in files for plane in file.planes for line in plane.lines
    )


def operations(plane, line):
    """Yield (operation, start, duration) in nanoseconds of the events that are operations of TensorFlow or XLA."""
    names = {key: value.name for key, value in plane.event_metadata.items()}
    stats = {key: value.name for key, value in plane.stat_metadata.items()}
    for event in line.events:
        name = names[event.metadata_id]
        kind = name.rpartition(":")[2]  # layer/Conv2D:Conv2D
        if any(stats[stat.metadata_id] == "hlo_op" for stat in event.stats):
            kind = re.sub(r"[.\d]+$", "", name)  # XLA: fusion.12
        elif kind == name or "::" in name or " " in name or kind.startswith("__inference"):
            continue
        yield kind, line.timestamp_ns + 1e-3 * event.offset_ps, 1e-3 * event.duration_ps


def put(array):
    if array.dtype.names:  # BFLOAT16 of stele_worker.models.inputs
        return tf.bitcast(tf.constant(array.view("<u2")), tf.bfloat16)
    if array.dtype == "int32":  # labels and tokens: TensorFlow keeps int32 in host memory
        array = array.astype("int64")
    return tf.constant(array) if strategy is None else distributed(lambda number: tf.constant(array))


def distributed(make):
    """Return the values make(number), each on the device of this number, as one value of all devices."""

    def value(context):
        number = context.replica_id_in_sync_group
        with tf.device(strategy.extended.worker_devices[number]):
            return make(number)

    return strategy.experimental_distribute_values_from_function(value)


def zeros_on_devices(shape):
    return distributed(lambda number: tf.zeros(shape))


def take(data, rows):
    if strategy is None:
        return tf.gather(data, rows)
    copies, shares = local(data), numpy.split(rows, ranks.equal_shares(len(rows), ranks.count))
    return distributed(lambda number: tf.gather(copies[number], shares[number]))


def draw_integers(samples, limit, seed):
    """Return random integers below ``limit``, of shape (samples, 1), on the device."""
    return tf.random.stateless_uniform((samples, 1), (seed, 0), maxval=limit, dtype=tf.int64)


def draw_weight(shape, seed):
    """Return what Keras' layers start from, as an array in the Task's layout."""
    # Glorot's; tf.initializers are those of Keras, which may have another backend
    limit = (6 / ((shape[0] + shape[1]) * int(numpy.prod(shape[2:])))) ** 0.5
    return tf.random.stateless_uniform(shape, (seed, 0), -limit, limit).numpy()


@tf.function
def take_pixels(images, table, layout):
    """Return the augmented images of an epoch: see ``stele_worker.tasks.augmentation``."""
    rows, columns, cut_rows, cut_columns = table
    images = tf.gather(tf.gather(images, rows, batch_dims=1), columns, axis=2, batch_dims=1)
    if cut_rows is None:
        return images
    return tf.where((cut_rows[:, :, None] & cut_columns[:, None, :])[..., None], 0.0, images)


def wait(value):
    if device == "cuda":
        tf.test.experimental.sync_devices()  # on a CPU a call returns after its computation


def fetch(value):
    if isinstance(value, tf.distribute.DistributedValues) and not isinstance(value, tf.Variable):
        return numpy.concatenate(copies(value))  # parts of a batch
    return tf.cast(value, tf.float32).numpy()


def copies(value):
    """Return the part of a value, or the copy, that each device has, as NumPy arrays."""
    return [tf.cast(one, tf.float32).numpy() for one in local(value)]


def forget_peak_memory():
    for number in range(ranks.count if device == "cuda" else 0):
        tf.config.experimental.reset_memory_stats("GPU:%d" % number)


def peak_memory():
    """Return the bytes of the device that used most; None on a CPU."""
    if device == "cpu":
        return None
    return max(
        tf.config.experimental.get_memory_info("GPU:%d" % number)["peak"] for number in range(ranks.count)
    )
