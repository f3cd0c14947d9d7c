"""Keras 3 on the backend in KERAS_BACKEND: TensorFlow, JAX or PyTorch.

The backend's module handles device, threads, arrays and waiting. This module has the training loop that Keras
documents for each backend, with public names that every Keras 3 release has. It was as fast as the step inside
``fit``. It returns the batch's loss on the device, where ``fit`` returns a running mean.
"""

import random
import weakref

import keras
import numpy

from stele_worker import ranks
from stele_worker.frameworks import load
from stele_worker.kernels import selected

# the mode of the backend: "eager" is run_eagerly=True in Keras, "jit" is jit_compile=True
MODES = {
    "default": {"jax": "jit", "tensorflow": "graph", "torch": "eager"},
    "eager": {"jax": "op-by-op", "tensorflow": "eager", "torch": "eager"},
    "jit": {"jax": "jit", "tensorflow": "xla", "torch": "compile"},
}
# the Task's names of parameters that Keras' layers name otherwise
KINDS = {
    "kernel": "weight",
    "gamma": "weight",
    "embeddings": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
BACKEND = keras.backend.backend()
native = load(BACKEND)
compiled, in_force = native.compiled, native.in_force
put, take, wait, fetch, peak_memory = native.put, native.take, native.wait, native.fetch, native.peak_memory
take_pixels = native.take_pixels  # Keras' operations would not be compiled
profile, kernels = native.profile, getattr(native, "kernels", selected)
PARALLEL, STATISTICS = getattr(native, "PARALLEL", None), getattr(native, "STATISTICS", None)
forget_peak_memory = getattr(native, "forget_peak_memory", lambda: None)  # JAX cannot

device = "cpu"
deterministic = False
mode = "default"
precision = "fp32"
tuned = True
scope = None  # a reference, because Keras leaves the scope when it is collected
fused = weakref.WeakSet()  # networks that are faster with XLA, also on a CPU
pending = weakref.WeakKeyDictionary()  # JAX: network -> (variables, newer values from training)


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings."""
    global device, deterministic, mode, precision, scope, tuned
    device, deterministic, mode = settings["device"], settings["deterministic"], settings["mode"]
    precision, tuned = settings["precision"], settings["tuned"]
    native.configure(dict(settings, mode=MODES[mode][BACKEND]))
    if BACKEND == "torch":  # Keras uses CUDA if there is a CUDA device
        # Keras compiles the call of each layer as one function. PyTorch compiles it for eight layers and leaves the
        # others eager. With a limit of 256, a training step of MobileNetV2 took 2.0 s, not 0.5: each call checks all
        native.strict = False
        scope = keras.device("gpu:{}".format(ranks.number()) if device == "cuda" else "cpu")
        scope.__enter__()
    if BACKEND == "jax" and ranks.count > 1:
        used = keras.distribution.list_devices()[: ranks.count]
        keras.distribution.set_distribution(keras.distribution.DataParallel(devices=used))
    # Keras draws its seeds from here. keras.utils.set_random_seed would import TensorFlow wherever it is installed
    random.seed(settings["seed"])
    numpy.random.seed(settings["seed"])
    if tuned:
        keras.config.set_floatx("float32")
        keras.config.set_image_data_format("channels_last")


def versions():
    return {"keras": keras.__version__, **native.versions()}


def flags():
    return {
        "backend": BACKEND,
        "image_data_format": keras.config.image_data_format(),
        "image_data_format_of_recipes": image_data_format("float32" if precision == "fp32" else "other")
        if tuned
        else None,
        "dtype_policy": keras.config.dtype_policy().name,
        "jit_compile": jit_compile(recurrent=False),
        "jit_compile_recurrent": jit_compile(recurrent=True),
        "use_cudnn": use_cudnn(),
        **native.flags(),
    }


def set_policy(task):
    """Set the arithmetic of layers created from now on; their parameters are always float32."""
    if precision == "default":
        return
    keras.config.set_dtype_policy("float32" if task.dtype == "float32" else "mixed_" + task.dtype)


def image_data_format(dtype):
    """Return the layout of images in recipes. XLA and TensorFlow choose that of their kernels themselves."""
    first = BACKEND == "torch" and native.channels_first(dtype)
    return "channels_first" if first else "channels_last"


def use_cudnn():
    """Return whether a GRU uses the backend's fused operation. On a CPU the plain loop is faster if XLA compiles it.

    XLA cannot compile that of TensorFlow.
    """
    if BACKEND == "tensorflow" and jit_compile(recurrent=True):
        return False
    return "auto" if device == "cuda" or BACKEND == "torch" else False


def jit_compile(recurrent):
    """Return whether a compiler compiles a function; never "auto", which has a different meaning on each backend.

    PyTorch runs eagerly. On TensorFlow with a CPU, XLA made convolutions 1.6 times slower and the loop over time
    1.3 times faster. With a GPU the choice is that of Keras: XLA except for cuDNN and determinism.
    """
    if mode != "default":
        return mode == "jit"
    if BACKEND == "tensorflow":
        return recurrent if device == "cpu" else not recurrent and not deterministic
    return BACKEND == "jax"


def compile_function(net, function):
    return compiled(function, xla=uses_xla(net)) if BACKEND == "tensorflow" else compiled(function)


def faster_with_xla(net):
    """Mark a network that is faster with XLA, also on a CPU; return the network."""
    fused.add(net)
    return net


def uses_xla(net):
    """Return whether XLA compiles a network on TensorFlow; of a model of the user, as ``fit`` decides."""
    if mode == "default" and not tuned:
        return net.jit_compile
    recurrent = any(isinstance(layer, keras.layers.RNN) for layer in net.layers)
    return jit_compile(recurrent) or (mode == "default" and device == "cpu" and net in fused)


def summed_over_devices(function):
    """Return a function that all devices of TensorFlow execute, with the sum of what it returns on them."""
    if BACKEND != "tensorflow" or native.strategy is None:
        return function
    import tensorflow

    run = native.all_reduced(function, tensorflow.distribute.ReduceOp.SUM)
    return lambda *arrays: native.first_copies(run(*arrays))


def adam(task):
    """Return Adam with epsilon outside the root and both moments bias-corrected."""
    backends = type(keras.optimizers.Adam())  # with PyTorch it updates all parameters at once

    class Adam(backends):
        # Keras adds epsilon before it corrects the second moment, the Task adds it after: so correct
        # epsilon by the same factor; without it the tenth loss of the GRU is 6e-4 off

        @property
        def epsilon(self):
            step = keras.ops.cast(self.iterations + 1, "float32")
            return self.constant * keras.ops.sqrt(1 - self.beta_2**step)

        @epsilon.setter
        def epsilon(self, constant):
            self.constant = constant

    return Adam(task.learning_rate, beta_1=task.beta1, beta_2=task.beta2, epsilon=task.epsilon, amsgrad=False)


def cross_entropy():
    """Return the mean loss of a batch, as a function of labels and logits."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum_over_batch_size")


def gradients(recipe, net, task):
    """Return run(*inputs, y) -> (loss, {parameter: gradient})."""
    differentiate = make_gradient_function(net, getattr(recipe, "loss", lambda task: cross_entropy())(task))

    def run(*arrays):
        loss, grads = differentiate(*arrays)
        return loss, recipe.named(net.trainable_variables, grads)

    return run


def inference_step(recipe, net, task):
    """Return step(*inputs) -> logits or features."""
    return make_inference_step(net, recipe.output(net))


def make_gradient_function(net, loss):
    """Return run(*inputs, y) -> (loss, a gradient for each of net.trainable_variables)."""
    if BACKEND != "jax":
        return compile_function(net, summed_over_devices(backward(net, loss)))
    variables, others = net.trainable_variables, net.non_trainable_variables
    run = compiled(stateless(net, loss))

    def step(*arrays):
        write_back(net)
        (value, _), gradients = run(values(variables), values(others), *arrays)
        return value, gradients

    return step


def make_training_step(net, optimiser, loss):
    """Return step(*inputs, y) -> loss, which updates the parameters."""
    optimiser.build(net.trainable_variables)
    make = make_stateless_training_step if BACKEND == "jax" else make_stateful_training_step
    step = make(net, optimiser, loss)
    add_state(step, net, optimiser)
    return step


def make_stateful_training_step(net, optimiser, loss):
    run = backward(net, loss)

    def update(*arrays):
        value, gradients = run(*arrays)
        optimiser.apply(gradients, net.trainable_variables)
        return value

    step = compile_function(net, summed_over_devices(update))
    if hasattr(run, "communication"):
        step.communication = run.communication
    return step


def add_state(step, net, optimiser):
    """Give ``step`` a state: of the network, its random generators and the optimiser. See ``stele_worker.recipes``."""
    variables = net.variables + optimiser.variables

    def state():
        write_back(net)
        random = {"random": native.random_state()} if BACKEND == "torch" else {}  # its dropout draws from it
        return dict(to_arrays(variables), **random)

    def restore(saved):
        pending.pop(net, None)
        from_arrays(variables, saved)
        if BACKEND == "torch":
            native.restore_random(saved["random"])

    step.state, step.restore = state, restore


def seen_by_optimiser(variable):
    """Return what an optimiser may receive as a variable: on TensorFlow its value, or the copy of each device."""
    return [variable, variable.value] + list(native.local(variable.value) if BACKEND == "tensorflow" else ())


def to_arrays(variables, prefix=""):
    """Return the values of variables as NumPy arrays, named by their position."""
    return {prefix + str(number): keras.ops.convert_to_numpy(one) for number, one in enumerate(variables)}


def from_arrays(variables, arrays, prefix=""):
    for number, variable in enumerate(variables):
        variable.assign(arrays[prefix + str(number)])


def make_inference_step(net, output):
    """Return step(*inputs) -> the network's tensor ``output``, for inference."""
    return make_model_step(net, keras.Model(net.inputs, output))


def make_model_step(net, model):
    """Return step(*inputs) -> the output of a ``model`` that has the weights of ``net``, for inference."""
    if BACKEND == "tensorflow":
        run = native.inferred_on_all_devices(
            lambda *inputs: model(one_or_all(inputs), training=False), uses_xla(net)
        )
        return compile_function(net, run)
    if BACKEND == "torch":
        import torch

        return torch.inference_mode()(compiled(lambda *inputs: model(one_or_all(inputs), training=False)))
    variables, others = model.trainable_variables, model.non_trainable_variables

    @compiled
    def run(weights, others, *inputs):
        return model.stateless_call(weights, others, one_or_all(inputs), training=False)[0]

    def step(*inputs):
        write_back(net)
        return run(values(variables), values(others), *inputs)

    return step


def one_or_all(inputs):
    """Return the inputs as a model takes them: a list, or the only one."""
    return inputs[0] if len(inputs) == 1 else list(inputs)


def parameters(net):
    """Return the values of parameters and running statistics, in the order of net.weights."""
    write_back(net)
    return values(net.weights)


def outputs(net, names):
    """Return run(*inputs) -> {layer: output}. ``names`` maps names of Keras layers to the names in the result."""
    first = keras.config.image_data_format() == "channels_first"
    layers = [net.get_layer(name).output for name in names]
    run = make_inference_step(
        net, [keras.ops.moveaxis(one, 1, -1) if first and one.ndim == 4 else one for one in layers]
    )
    return lambda *inputs: dict(zip(names.values(), run(*inputs)))


def backward(net, loss):
    """Return run(*inputs, y) as ``make_gradient_function``, not compiled, for TensorFlow and PyTorch."""
    variables = net.trainable_variables
    if BACKEND == "torch":
        compute = native.on_all_devices(
            net,
            lambda *arrays: added(loss(arrays[-1], net(one_or_all(arrays[:-1]), training=True)), net.losses),
        )

        def run(*arrays):
            net.zero_grad()
            value = compute(*arrays)
            value.backward()
            return value.detach(), [gradient_of(variable.value) for variable in variables]

        native.add_communication(run, compute)
        return run
    import tensorflow

    loss = divided(loss)
    devices = 1 if native.strategy is None else ranks.count
    compute = native.in_shards(
        lambda *arrays: added(
            loss(arrays[-1], net(one_or_all(arrays[:-1]), training=True)), net.losses, devices
        )
    )

    def run_taped(*arrays):
        with tensorflow.GradientTape() as tape:
            value = compute(*arrays)
        # an embedding's gradient consists of slices; Keras' Adam would square slices of the same row separately
        pairs = zip(tape.gradient(value, variables), variables)
        # a variable that the loss does not reach has no gradient: zero
        return value, [
            tensorflow.zeros_like(variable.value) if grad is None else tensorflow.convert_to_tensor(grad)
            for grad, variable in pairs
        ]

    return native.for_each_device(run_taped, uses_xla(net))


def gradient_of(tensor):
    """Return the gradient of a tensor of PyTorch; zeros if the loss does not reach it, as JAX does."""
    return native.torch.zeros_like(tensor) if tensor.grad is None else tensor.grad


def added(value, losses, devices=1):
    """Return a loss with those of a network's layers, its regularisers and ``add_loss``, as ``fit`` adds them."""
    return value + sum(map(keras.ops.sum, losses)) / devices if losses else value


def divided(loss):
    """Return a loss divided by the devices, whose gradients Keras' optimiser adds. Keras divides its own losses."""
    if native.strategy is None or isinstance(loss, keras.losses.Loss):
        return loss
    return lambda labels, logits: loss(labels, logits) / ranks.count


def stateless(net, loss):
    """Return run(parameters, other variables, *inputs, y) -> ((loss, other variables), gradients), for JAX."""
    import jax

    def compute(parameters, others, *arrays):
        inputs = one_or_all(arrays[:-1])
        logits, others, losses = net.stateless_call(
            parameters, others, inputs, training=True, return_losses=True
        )
        return added(loss(arrays[-1], logits), losses), others

    return jax.value_and_grad(compute, has_aux=True)


def make_stateless_training_step(net, optimiser, loss):
    write_back(net)
    groups = net.trainable_variables, net.non_trainable_variables, optimiser.variables
    run = stateless(net, loss)

    def update(state, *arrays):
        parameters, others, slots = state
        (value, others), gradients = run(parameters, others, *arrays)
        parameters, slots = optimiser.stateless_apply(slots, gradients, parameters)
        return value, (parameters, others, slots)

    update = native.compiled_update(update, 1, values(groups[0]))

    def step(*arrays):
        # as in fit, values pass from step to step; write_back() copies them to the variables
        _, state = pending.get(net) or (groups, native.replicated([values(group) for group in groups]))
        value, state = update(tuple(state), *arrays)
        native.wait_also_for(state)
        pending[net] = groups, state
        return value

    native.add_communication(step, update)
    return step


def write_back(net):
    """Copy the newest values of training on JAX to a network's variables."""
    for variables, numbers in zip(*pending.pop(net, ((), ()))):
        for variable, number in zip(variables, numbers):
            variable.assign(number)


def copies(value):
    """See ``stele_worker.frameworks``."""
    return [fetch(value)] if BACKEND == "torch" else native.copies(value)


def plain(name):
    return name.replace(".", "_")  # PyTorch does not allow a dot in a name


def task_names(variables):
    """Return the Task's name of each variable of layers whose names are ``plain``."""
    paths = [variable.path.split("/")[-2:] for variable in variables]
    return [layer.replace("_", ".") + "." + KINDS.get(kind, kind) for layer, kind in paths]


def named(variables, values):
    return dict(zip(task_names(variables), values))


def draw_integers(samples, limit, seed):
    """Return random integers below ``limit``, of shape (samples, 1), on the device."""
    dtype = "int32" if BACKEND == "jax" else "int64"  # as put() gives
    return keras.random.randint((samples, 1), 0, limit, dtype, seed=seed)


def draw_weight(shape, seed):
    """Return what Keras' layers start from, as an array in the Task's layout."""
    shape = (*shape[2:], shape[1], shape[0])
    weight = keras.ops.convert_to_numpy(keras.initializers.GlorotUniform(seed)(shape))
    return weight.transpose(3, 2, 0, 1) if weight.ndim == 4 else weight.T


def values(variables):
    return [variable.value for variable in variables]
