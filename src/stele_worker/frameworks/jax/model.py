"""A recipe for a user's JAX model: one step, its whole state donated."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy

from stele_worker import frameworks
from stele_worker.frameworks.jax.model_kinds import count, function, layers, prepare  # noqa: F401
from stele_worker.models import building, calling, first_layer, optimizers, outputs, own_training, weights
from stele_worker.models.errors import SpecError
from stele_worker.models.facts import facts_of
from stele_worker.models.signatures import required

framework = frameworks.load("jax")

LAYOUT = None


def network(task):
    net = prepare(building.build_for_task(task, "jax", seed), task)
    return load(net, weights.read_files(task.model), task.model)


def load(net, arrays, model=None):
    if arrays is None:
        return net
    shapes = {name: value.shape for name, value in stored(net).items()}
    fit = weights.match(shapes, arrays, optional=net.statistics_names, model=model)
    for names, values in ((net.names, net.params), (net.statistics_names, net.statistics)):
        for at, name in enumerate(names):
            if name in fit:
                values[at] = framework.put(fit[name].astype(values[at].dtype))
    return net


def facts(net):
    return facts_of(stored(net), net.names)


def gradients(net, task):
    run = framework.compiled(jax.value_and_grad(loss(net, task), has_aux=True))

    def differentiate(*batch):
        (value, _), grads = run(net.params, net.statistics, net.randomness, *batch)
        return value, dict(zip(net.names, grads))

    return differentiate


def training_step(net, task):
    init, move = optimizer_of(task)
    slots = init(net.params)
    differentiate = jax.value_and_grad(loss(net, task), has_aux=True)

    @framework.compiled(donate=(0, 1, 2, 3))
    def update(params, statistics, randomness, slots, *batch):
        (value, (statistics, randomness)), grads = differentiate(params, statistics, randomness, *batch)
        params, slots = move(params, grads, slots)
        return value, params, statistics, randomness, slots

    def step(*batch):
        nonlocal slots
        value, net.params, net.statistics, net.randomness, slots = update(
            net.params, net.statistics, net.randomness, slots, *batch
        )
        return value

    return step


def inference_step(net, task):
    call = with_precision(net, task, checked(net, task, training=False))

    def predict(*values):
        return call(*values)[0]

    if framework.mode == "constants":
        return framework.compiled(lambda *batch: predict(net.params, net.statistics, net.randomness, *batch))
    run = framework.compiled(predict)
    return lambda *batch: run(net.params, net.statistics, net.randomness, *batch)


def raw(net, task):
    call = checked(net, task, training=False)
    # shapes are all that is asked for, and cost no compilation
    shapes = partial(jax.eval_shape, lambda *values: call(*values)[0])
    return lambda *batch: shapes(net.params, net.statistics, net.randomness, *batch)


def checked(net, task, training):
    """Return ``net.call``, which raises SpecError if the model returns something that JAX cannot compile."""
    call = net.call(task, training)

    def run(*values):
        result = call(*values)
        for path, leaf in jax.tree_util.tree_flatten_with_path(result[0])[0]:
            if not (isinstance(leaf, outputs.NUMBERS) or outputs.is_numeric(leaf)):
                message = (
                    "{} returns {!r:.60} of type {}{}. JAX compiles the model, so that it returns only arrays and "
                    "numbers. Leave it out of what the model returns."
                )
                place = " in its output " + jax.tree_util.keystr(path) if path else ""
                raise SpecError(message.format(task.name, leaf, type(leaf).__name__, place))
        return result

    return run


def stored(net):
    return dict(zip(net.names + net.statistics_names, net.params + net.statistics))


def neutral(name, array):
    return array.copy()  # ``fetch`` may share memory with a parameter, which the next step changes


def activations(net, task):
    """Return run(*inputs) -> {layer: output} in order of execution; {} for a pair of functions."""
    run = net.record(task)
    return lambda *batch: run(net.params, net.statistics, net.randomness, *batch)


def inputs(model, source):
    """Return (inputs, where they come from), or None. Only flax.nnx knows its sizes before the first call."""
    if len(required(function(model))) != 1:
        return None
    result = first_layer.infer(layers(model), channels_last=True)
    return result and ((result,), "the signature and the first layer")


def why_untrained(model, number=1):
    """Return why Stele does not train a model: it has a training of its own; or None."""
    return own_training.describe(model, own_training.TORCH)


def vocabulary(model):
    return first_layer.vocabulary(layers(model))


def seed(value):
    """Seed NumPy, which some factories use. JAX has no global generator: its keys come from ``task.seed``."""
    numpy.random.seed(value)


def loss(net, task):
    """Return compute(params, statistics, randomness, *batch) -> (loss, (statistics, randomness))."""
    size = len(calling.names(task))
    call = with_precision(net, task, checked(net, task, training=True))

    def compute(params, statistics, randomness, *batch):
        output, statistics, randomness = call(params, statistics, randomness, *batch[:size])
        if task.target is None or task.target.name:
            value = outputs.loss(output)
        else:
            compare = cross_entropy if task.target.kind == "int" else squared_error
            value = compare(real(outputs.main(output)).astype(jnp.float32), batch[-1])
        return value, (statistics, randomness)

    return compute


def real(output):
    """Return an output as real numbers; a complex number as two."""
    return jnp.stack([output.real, output.imag], -1) if jnp.iscomplexobj(output) else output


def cross_entropy(logits, labels):
    likely = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(likely, labels.reshape(logits.shape[:-1] + (1,)), axis=-1).mean()


def squared_error(output, target):
    return jnp.square(output - target.reshape(output.shape)).mean()


def with_precision(net, task, call):
    """Return ``call`` with parameters and inputs in the Task's dtype; running statistics stay float32."""
    if task.dtype == "float32":
        return call

    def lower(values):
        return [value.astype(task.dtype) if value.dtype == jnp.float32 else value for value in values]

    return lambda params, statistics, randomness, *batch: call(lower(params), statistics, randomness, *lower(batch))


def optimizer_of(task):
    """Return init(params) -> slots and move(params, grads, slots) -> (params, slots), of optax or plain SGD."""
    if task.optimizer is None:
        return lambda params: (), lambda params, grads, slots: (
            [weight - task.learning_rate * grad for weight, grad in zip(params, grads)],
            slots,
        )
    optimizer = optimizers.construct(task, ("init", "update"))

    def move(params, grads, slots):
        updates, slots = optimizer.update(grads, slots, params)
        return [weight + update for weight, update in zip(params, updates)], slots

    return optimizer.init, move
