"""A recipe for a user's Keras 2 model: of tf.keras before TensorFlow 2.16, or of tf_keras. ``fit`` runs the same steps.

Its names are those of ``stele_worker.frameworks.tensorflow.model``, which calls them.
"""

import contextlib
import sys
from functools import partial

import tensorflow as tf

from stele_worker import frameworks
from stele_worker.frameworks.keras import model_layers
from stele_worker.frameworks.keras.model_layers import (  # noqa: F401
    function,
    inputs,
    keras_of,
    layers,
    loss_name,
    parameter_names,
    target_kind,
    vocabulary,
    why_untrained,
)
from stele_worker.frameworks.tensorflow import recipe
from stele_worker.models import optimizers, outputs, own_training, weights
from stele_worker.models.facts import facts_of
from stele_worker.models.task import example, without_dropout

framework = frameworks.load("tensorflow")

compiled = partial(framework.compiled, autograph=True)  # as Keras does, for the loops of the user's layers


@contextlib.contextmanager
def policy(task):
    """Set the arithmetic of layers that are created inside; their parameters are always float32."""
    if task.dtype == "float32":  # the default, which the user's module may have changed
        yield
        return
    libraries = [tf.keras] + [sys.modules[name] for name in ("tf_keras",) if name in sys.modules]
    for library in libraries:
        library.mixed_precision.set_global_policy("mixed_" + task.dtype)
    try:
        yield
    finally:
        for library in libraries:
            library.mixed_precision.set_global_policy("float32")


def prepare(model, task):
    """Return the model with its weights, which a subclassed model creates in its first call."""
    if model_layers.needs_graph(model):
        model = model_layers.functional(model, task.inputs)
    if without_dropout(task):
        model_layers.disable_dropout(model)
    if not model.built or not model.weights:
        model(pack(task, [tf.constant(array) for array in example(task, task.batch)]))
    return model


def load(net, arrays, model=None):
    if arrays is None:
        return net
    held = stored(net)
    fit = weights.match({name: tuple(variable.shape) for name, variable in held.items()}, arrays, model=model)
    for name, array in fit.items():
        held[name].assign(array)
    return net


def facts(net):
    return facts_of(stored(net), parameter_names(net, net.trainable_variables))


def gradients(net, task):
    run, names = differentiate(net, task), parameter_names(net, net.trainable_variables)

    @compiled
    def compute(*batch):
        value, grads = run(*batch)
        # an embedding's gradient consists of slices
        return value, dict(zip(names, map(tf.convert_to_tensor, grads)))

    return compute


def training_step(net, task):
    run, optimizer = differentiate(net, task), optimizer_of(net, task)
    if hasattr(optimizer, "build"):  # before Keras 2.11 it has none
        optimizer.build(net.trainable_variables)

    @compiled
    def step(*batch):
        value, grads = run(*batch)
        optimizer.apply_gradients(zip(grads, net.trainable_variables))
        return value

    return step


def differentiate(net, task):
    """Return run(*batch) -> (loss, gradients), for use in a tf.function."""
    compute = loss(net, task)

    def run(*batch):
        with tf.GradientTape() as tape:
            value = compute(None if task.target is None else batch[-1], net(pack(task, batch), training=True))
            if net.losses:  # regularisers and add_loss, as in ``fit``
                value += tf.add_n([tf.reduce_sum(one) for one in net.losses])
        # a variable that the loss does not reach has no gradient: zero
        return value, tape.gradient(value, net.trainable_variables, unconnected_gradients="zero")

    return run


def inference_step(net, task):
    @compiled
    def step(*batch):
        return net(pack(task, batch), training=False)

    return recipe.frozen(step, framework.uses_jit(False)) if framework.mode == "frozen" else step


def raw(net, task):
    if task.target is not None and task.target.name:
        # Keras' loops compute the loss after the call: its own is one that a model returns unasked
        raise NotImplementedError("a Keras model is not given its target")
    return lambda *batch: net(pack(task, batch), training=False)


def stored(net):
    return dict(zip(parameter_names(net, net.weights), net.weights))


def activations(net, task):
    """Return run(*inputs) -> {layer: output} in order of execution; {} for a subclassed model, which has no graph."""
    visible, names = model_layers.visible_layers(net), model_layers.layer_names(net)
    if not visible:
        return lambda *batch: {}
    model = keras_of(net).Model(net.inputs, {names.get(name, name): net.get_layer(name).output for name in visible})
    return compiled(lambda *batch: model(pack(task, batch), training=False))


def count(net):
    return net.count_params()


def pack(task, batch):
    """Return the argument of the model: an array, a list of them, or a dict if the inputs have names."""
    named, size = [each.name for each in task.inputs], len(task.inputs)
    if all(named):
        return dict(zip(named, batch))
    return batch[0] if size == 1 else list(batch[:size])


def loss(net, task):
    """Return compute(target, output) -> loss, in the order of Keras."""
    own_training.refuse(task, why_untrained(net))
    chosen = model_layers.compiled_loss(net)
    if chosen is not None:
        return as_compiled(*chosen[1:])
    if task.target is None:
        return lambda target, output: outputs.loss(output)
    if task.target.kind == "float":
        return lambda target, output: squared_error(target, real(outputs.main(output)))
    probabilities = model_layers.ends_in_softmax(net)
    compare = keras_of(net).losses.SparseCategoricalCrossentropy(from_logits=not probabilities)

    def compute(target, output):
        output = outputs.main(output)
        return compare(tf.reshape(target, tf.shape(output)[:-1]), output)

    return compute


def as_compiled(compare, kind):
    """Return compute(target, output) -> loss of ``compile``, as ``fit`` calls it."""

    def compute(target, output):
        output = outputs.main(output)
        shape = tf.shape(output) if kind == "float" else tf.shape(output)[:-1]
        return tf.reduce_mean(compare(tf.reshape(target, shape), output))

    return compute


def real(output):
    """Return an output as real numbers; a complex number as two."""
    return tf.stack([tf.math.real(output), tf.math.imag(output)], -1) if outputs.is_complex(output) else output


def squared_error(target, output):
    return tf.reduce_mean(tf.square(tf.cast(output, tf.float32) - tf.reshape(target, tf.shape(output))))


def optimizer_of(net, task):
    if task.optimizer is not None:
        return optimizers.construct(task, ("apply_gradients",))
    if model_layers.compiled_optimizer(net) is not None:
        return model_layers.compiled_optimizer(net)
    return keras_of(net).optimizers.SGD(task.learning_rate)
