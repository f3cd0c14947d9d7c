"""A recipe for a user's TensorFlow model: a tf.Module, or a callable that has trainable variables.

A model of Keras 2 is a tf.Module, too. It uses the functions of ``stele_worker.frameworks.tensorflow.tf_keras``.
"""

import contextlib
import random
from functools import partial, wraps

import numpy
import tensorflow as tf

from stele_worker import frameworks
from stele_worker.frameworks.tensorflow import recipe, tf_keras
from stele_worker.models import building, calling, optimizers, outputs, own_training, specs, weights
from stele_worker.models.errors import SpecError
from stele_worker.models.facts import facts_of
from stele_worker.models.task import example, without_dropout

framework = frameworks.load("tensorflow")

LAYOUT = None
compiled = partial(framework.compiled, autograph=True)  # the user's code may have loops


def or_of_keras(function):
    """Return a function that calls the one of the same name in ``tf_keras`` if its first argument is a Keras model."""

    @wraps(function)
    def run(net, *others):
        chosen = getattr(tf_keras, function.__name__) if specs.is_keras2(net) else function
        return chosen(net, *others)

    return run


def network(task):
    with tf_keras.policy(task):
        net = prepare(building.build_for_task(task, "tensorflow", seed), task)
    return load(net, weights.read_files(task.model), task.model)


@or_of_keras
def prepare(model, task):
    """Return the model with all variables, which some models create in their first call."""
    if task.dtype != "float32":
        message = "{!r} computes in the types of its own code, so TensorFlow cannot run it in {}. Use fp32 or tf32."
        raise SpecError(message.format(task.name, task.dtype))
    arrays = [framework.put(array) for array in example(task, task.batch)[: len(task.inputs)]]
    caller(model, task._replace(target=None), training=False)(*arrays)
    return model


@or_of_keras
def load(net, arrays, model=None):
    if arrays is None:
        return net
    held = stored(net)
    fit = weights.match({name: tuple(value.shape) for name, value in held.items()}, arrays, model=model)
    for name, array in fit.items():
        held[name].assign(tf.cast(array, held[name].dtype))
    return net


@or_of_keras
def facts(net):
    return facts_of(stored(net), unique(net.trainable_variables))


@or_of_keras
def gradients(net, task):
    names, run = unique(net.trainable_variables), differentiate(net, task)

    @compiled
    def compute(*batch):
        value, grads = run(*batch)
        # an embedding's gradient consists of slices
        return value, [tf.convert_to_tensor(grad) for grad in grads]

    def named(*batch):
        value, grads = compute(*batch)
        return value, dict(zip(names, grads))

    return named


@or_of_keras
def training_step(net, task):
    variables, run, move = net.trainable_variables, differentiate(net, task), optimizer_of(net, task)

    @compiled
    def step(*batch):
        value, grads = run(*batch)
        move(grads, variables)
        return value

    return step


@or_of_keras
def inference_step(net, task):
    call = caller(net, task._replace(target=None), training=False)
    step = compiled(lambda *batch: call(*batch))
    return recipe.frozen(step, framework.uses_jit(False)) if framework.mode == "frozen" else step


@or_of_keras
def raw(net, task):
    return caller(net, task, training=False)


@or_of_keras
def stored(net):
    variables = getattr(net, "variables", net.trainable_variables)
    return dict(zip(unique(variables), variables))


def neutral(name, array):
    return array.copy()  # ``fetch`` may share memory with a parameter, which the next step changes


@or_of_keras
def activations(net, task):
    return lambda *batch: {}  # a module has no graph


def seed(value):
    """Seed every generator from which layers draw. Keras 2 draws the seeds of its layers from that of Python."""
    random.seed(value)
    numpy.random.seed(value)
    tf.random.set_seed(value)


@or_of_keras
def count(net):
    return sum(int(tf.size(variable)) for variable in net.trainable_variables)


@or_of_keras
def inputs(model, source):
    return None  # a module has no layers with known sizes


@or_of_keras
def function(net):
    return calling.in_inference(net.__call__)


@or_of_keras
def layers(model):
    return []


@or_of_keras
def vocabulary(model):
    return None


def unique(variables):
    """Return the names of variables, numbered if several have the same name."""
    result = []
    for variable in variables:
        name = variable.name.split(":")[0]
        again = sum(each.split("#")[0] == name for each in result)
        result.append("{}#{}".format(name, again + 1) if again else name)
    return result


def caller(net, task, training):
    """Return call(*batch) -> the model's output. It is told whether it trains if it has a flag for that."""
    return calling.make_caller(net, calling.names(task), calling.flags(net.__call__, training))


def differentiate(net, task):
    """Return run(*batch) -> (loss, gradients), for use in a tf.function."""
    own_training.refuse(task, why_untrained(net))
    call, size = caller(net, task, training=True), len(calling.names(task))
    context = no_dropout if without_dropout(task) else contextlib.ExitStack

    def run(*batch):
        with tf.GradientTape() as tape, context():
            value = loss(task, call(*batch[:size]), batch[-1])
        # a variable that the loss does not reach has no gradient: zero
        return value, tape.gradient(value, net.trainable_variables, unconnected_gradients="zero")

    return run


def loss(task, output, target):
    """Return the model's own loss, cross-entropy, or for a float target the squared error."""
    if task.target is None or task.target.name:
        return outputs.loss(output)
    output = tf_keras.real(outputs.main(output))
    if task.target.kind == "float":
        return tf.reduce_mean(tf.square(output - tf.reshape(target, tf.shape(output))))
    labels = tf.reshape(target, tf.shape(output)[:-1])
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=output))


@or_of_keras
def why_untrained(net, number=1):
    """Return why Stele does not train a model: it has a training of its own; or None."""
    return own_training.describe(net, own_training.TORCH)


@or_of_keras
def target_kind(net):
    return None


@or_of_keras
def loss_name(net, optimizer):
    return None


@contextlib.contextmanager
def no_dropout():
    """Replace tf.nn.dropout by the identity while TensorFlow traces a step."""
    original, tf.nn.dropout = tf.nn.dropout, lambda x, *values, **named: tf.convert_to_tensor(x)
    try:
        yield
    finally:
        tf.nn.dropout = original


def optimizer_of(net, task):
    """Return move(grads, variables) of plain SGD, or of the user's class, which needs ``apply_gradients``."""
    if task.optimizer is None:
        return partial(descend, task.learning_rate)
    optimizer = optimizers.construct(task, ("apply_gradients",))
    if hasattr(optimizer, "build"):
        optimizer.build(net.trainable_variables)
    return lambda grads, variables: optimizer.apply_gradients(zip(grads, variables))


def descend(rate, grads, variables):
    for grad, variable in zip(grads, variables):
        if isinstance(grad, tf.IndexedSlices):  # of an embedding: only the rows of this batch move
            variable.scatter_sub(tf.IndexedSlices(rate * grad.values, grad.indices))
        else:
            variable.assign_sub(rate * grad)
