"""Keras 3 around any Task, on the backend that KERAS_BACKEND names: TensorFlow, JAX or PyTorch.

What belongs to the backend (device, threads, arrays, waiting) is asked of its own module. What is here is
the training loop that Keras documents for each backend, in public names, which every Keras 3 shares; it was
as fast as the step inside ``fit``, and returns the batch's loss on the device instead of a running mean.
"""

import weakref

import keras

from stele_worker.frameworks import load

BACKEND = keras.backend.backend()
native = load(BACKEND)
put, take, wait, fetch, peak_memory = native.put, native.take, native.wait, native.fetch, native.peak_memory

device = "cpu"
deterministic = False
scope = None  # kept, for Keras leaves it when it is collected
unsettled = weakref.WeakKeyDictionary()  # JAX: network -> variables, and the values that training gave them


def configure(settings):
    """See ``stele_worker.frameworks``; settings as in ``stele_worker.protocol``."""
    global device, deterministic, scope
    device, deterministic = settings["device"], settings["deterministic"]
    native.configure(settings)
    if BACKEND == "torch":  # Keras takes CUDA wherever there is any
        scope = keras.device("gpu:0" if device == "cuda" else "cpu")
        scope.__enter__()
    keras.utils.set_random_seed(settings["seed"])
    keras.config.set_floatx("float32")
    keras.config.set_image_data_format("channels_last")  # no slower than channels_first on any


def versions():
    return {"keras": keras.__version__, **native.versions()}


def flags():
    return {
        "backend": BACKEND,
        "image_data_format": keras.config.image_data_format(),
        "dtype_policy": keras.config.dtype_policy().name,
        "jit_compile": jit_compile(recurrent=False),
        "jit_compile_recurrent": jit_compile(recurrent=True),
        "use_cudnn": use_cudnn(),
        **native.flags(),
    }


def set_policy(task):
    """The arithmetic of the layers made from now on; their parameters stay float32."""
    keras.config.set_dtype_policy("float32" if task.dtype == "float32" else "mixed_" + task.dtype)


def use_cudnn():
    """Whether a GRU is the backend's fused one; on a CPU the plain one is faster wherever XLA compiles it."""
    return "auto" if device == "cuda" or BACKEND == "torch" else False


def jit_compile(recurrent):
    """Never "auto", which means something else on each backend.

    On torch it would be torch.compile. On TensorFlow with a CPU, XLA made convolutions 1.6 times slower and
    the loop over time 1.3 times faster; with a GPU it is as Keras decides: all but cuDNN and determinism.
    """
    if BACKEND == "tensorflow":
        return recurrent if device == "cpu" else not recurrent and not deterministic
    return BACKEND == "jax"


def compiled(net, function):
    if BACKEND == "torch":
        return function
    import tensorflow

    recurrent = any(isinstance(layer, keras.layers.RNN) for layer in net.layers)
    return tensorflow.function(function, autograph=False, jit_compile=jit_compile(recurrent))


def differentiated(net, loss):
    """run(x, y) -> (loss, a gradient for each of net.trainable_variables)."""
    if BACKEND != "jax":
        return compiled(net, backward(net, loss))
    import jax

    variables, others = net.trainable_variables, net.non_trainable_variables
    run = jax.jit(stateless(net, loss))

    def step(x, y):
        settle(net)
        (value, _), gradients = run(values(variables), values(others), x, y)
        return value, gradients

    return step


def trained(net, optimiser, loss):
    """step(x, y) -> loss, after which the parameters have moved."""
    optimiser.build(net.trainable_variables)
    if BACKEND == "jax":
        return trained_stateless(net, optimiser, loss)
    run = backward(net, loss)

    def step(x, y):
        value, gradients = run(x, y)
        optimiser.apply(gradients, net.trainable_variables)
        return value

    return compiled(net, step)


def inferred(net, output):
    """step(x) -> the network's tensor ``output``, for inference."""
    model = keras.Model(net.inputs, output)
    if BACKEND == "tensorflow":
        return compiled(net, lambda x: model(x, training=False))
    if BACKEND == "torch":
        import torch

        return torch.inference_mode()(lambda x: model(x, training=False))
    import jax

    variables, others = model.trainable_variables, model.non_trainable_variables
    run = jax.jit(lambda weights, others, x: model.stateless_call(weights, others, x, training=False)[0])

    def step(x):
        settle(net)
        return run(values(variables), values(others), x)

    return step


def parameters(net):
    """The values of what a network learns and of its running statistics, in the order of net.weights."""
    settle(net)
    return values(net.weights)


def outputs(net, names):
    """run(x) -> {layer: output}, of the Keras layers that are the keys of ``names``, under the names they map to."""
    run = inferred(net, [net.get_layer(name).output for name in names])
    return lambda x: dict(zip(names.values(), run(x)))


def backward(net, loss):
    """As ``differentiated``, where Keras keeps its variables: TensorFlow and PyTorch."""
    variables = net.trainable_variables
    if BACKEND == "torch":

        def run(x, y):
            net.zero_grad()
            value = loss(y, net(x, training=True))
            value.backward()
            return value.detach(), [variable.value.grad for variable in variables]

        return run
    import tensorflow

    def run_taped(x, y):
        with tensorflow.GradientTape() as tape:
            value = loss(y, net(x, training=True))
        # an embedding's gradient comes as slices, and Keras' Adam squares those of one row one by one
        return value, [tensorflow.convert_to_tensor(slope) for slope in tape.gradient(value, variables)]

    return run_taped


def stateless(net, loss):
    """(parameters, other variables, x, y) -> ((loss, other variables), gradients), for JAX."""
    import jax

    def compute(parameters, others, x, y):
        logits, others = net.stateless_call(parameters, others, x, training=True)
        return loss(y, logits), others

    return jax.value_and_grad(compute, has_aux=True)


def trained_stateless(net, optimiser, loss):
    import jax

    settle(net)
    groups = net.trainable_variables, net.non_trainable_variables, optimiser.variables
    run = stateless(net, loss)

    def update(state, x, y):
        parameters, others, slots = state
        (value, others), gradients = run(parameters, others, x, y)
        parameters, slots = optimiser.stateless_apply(slots, gradients, parameters)
        return value, (parameters, others, slots)

    update = jax.jit(update, donate_argnums=0)

    def step(x, y):
        # as in fit, values go from step to step, and into the variables when somebody reads those
        _, state = unsettled.get(net) or (groups, [values(group) for group in groups])
        value, state = update(tuple(state), x, y)
        unsettled[net] = groups, state
        return value

    return step


def settle(net):
    """Give a network's variables the values that training on JAX has brought them to."""
    for variables, numbers in zip(*unsettled.pop(net, ((), ()))):
        for variable, number in zip(variables, numbers):
            variable.assign(number)


def values(variables):
    return [variable.value for variable in variables]
