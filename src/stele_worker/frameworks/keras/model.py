"""A recipe for a user's Keras 3 model, on any backend, with the loops of ``stele_worker.frameworks.keras``."""

import os

import keras
from keras import ops

from stele_worker import frameworks
from stele_worker.frameworks.keras import model_layers, recipe
from stele_worker.frameworks.keras.model_layers import (  # noqa: F401
    function,
    inputs,
    layers,
    loss_name,
    parameter_names,
    target_kind,
    vocabulary,
    why_untrained,
)
from stele_worker.models import building, optimizers, outputs, own_training, weights
from stele_worker.models.errors import SpecError
from stele_worker.models.facts import facts_of
from stele_worker.models.task import example, without_dropout

framework = frameworks.load("keras")

LAYOUT = None
FLAGS = ("training",)  # ``fit`` passes no other


def network(task):
    recipe.set_policy(task)
    net = prepare(building.build_for_task(task, "keras", seed), task)
    return load(net, weights.read_files(task.model), task.model)


def prepare(model, task):
    """Return the model with its weights, which a subclassed model creates in its first call."""
    check_backend()
    if model_layers.needs_graph(model):
        model = model_layers.functional(model, task.inputs)
    if without_dropout(task):
        model_layers.disable_dropout(model)
    if not model.built or not model.weights:
        model(make_packer(task)([framework.put(array) for array in example(task, task.batch)]))
    return model


def check_backend():
    """Raise SpecError if the user's module asks for another backend than the one that runs already."""
    asked, runs = os.environ.get("KERAS_BACKEND") or framework.BACKEND, framework.BACKEND
    if asked != runs:
        message = (
            "The module of the model sets KERAS_BACKEND to {0!r}, but Keras runs on {1!r} already. Remove the line, "
            "and start the command with the variable: KERAS_BACKEND={0} stele ..."
        )
        raise SpecError(message.format(asked, runs))


def load(net, arrays, model=None):
    if arrays is None:
        return net
    held = dict(zip(parameter_names(net, net.weights), net.weights))
    recipe.parameters(net)  # on JAX it brings the variables up to date
    fit = weights.match({name: tuple(variable.shape) for name, variable in held.items()}, arrays, model=model)
    for name, array in fit.items():
        held[name].assign(array)
    return net


def facts(net):
    held = dict(zip(parameter_names(net, net.weights), net.weights))
    return facts_of(held, parameter_names(net, net.trainable_variables))


def gradients(net, task):
    run, pack = recipe.make_gradient_function(net, loss(net, task)), make_packer(task)
    names = parameter_names(net, net.trainable_variables)

    def differentiate(*batch):
        value, grads = run(pack(batch), target(task, batch))
        return value, dict(zip(names, grads))

    return differentiate


def training_step(net, task):
    run, pack = recipe.make_training_step(net, optimizer_of(net, task), loss(net, task)), make_packer(task)
    if task.target is None:
        return lambda *batch: run(pack(batch), None)
    return lambda *batch: run(pack(batch), batch[-1])


def inference_step(net, task):
    run, pack = recipe.make_model_step(net, net), make_packer(task)
    return lambda *batch: run(pack(batch))


def raw(net, task):
    if task.target is not None and task.target.name:
        # Keras' loops compute the loss after the call: its own is one that a model returns unasked
        raise NotImplementedError("a Keras model is not given its target")
    pack = make_packer(task)
    return lambda *batch: net(pack(batch), training=False)


def stored(net):
    return dict(zip(parameter_names(net, net.weights), recipe.parameters(net)))


def neutral(name, array):
    return array.copy()  # ``fetch`` may share memory with a parameter, which the next step changes


def activations(net, task):
    """Return run(*inputs) -> {layer: output} in order of execution; {} for a subclassed model, which has no graph."""
    visible, names = model_layers.visible_layers(net), model_layers.layer_names(net)
    if not visible:
        return lambda *batch: {}
    tensors = {names.get(name, name): net.get_layer(name).output for name in visible}
    run, pack = recipe.outputs(net, tensors), make_packer(task)
    return lambda *batch: run(pack(batch))


def seed(value):
    keras.utils.set_random_seed(value)


def count(net):
    return net.count_params()


def make_packer(task):
    """Return pack(batch) -> the argument of the model: an array, a list of them, or a dict if the inputs have names."""
    named, size = [each.name for each in task.inputs], len(task.inputs)
    if all(named):
        return lambda batch: dict(zip(named, batch))
    return (lambda batch: batch[0]) if size == 1 else (lambda batch: list(batch[:size]))


def target(task, batch):
    return None if task.target is None else batch[-1]


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
    compare = keras.losses.SparseCategoricalCrossentropy(from_logits=not model_layers.ends_in_softmax(net))

    def compute(target, output):
        output = outputs.main(output)
        return compare(ops.reshape(target, output.shape[:-1]), output)

    return compute


def as_compiled(compare, kind):
    """Return compute(target, output) -> loss of ``compile``, as ``fit`` calls it."""

    def compute(target, output):
        output = outputs.main(output)
        shape = output.shape if kind == "float" else output.shape[:-1]
        return ops.mean(compare(ops.reshape(target, shape), output))

    return compute


def real(output):
    """Return an output as real numbers; a complex number as two."""
    return ops.stack([ops.real(output), ops.imag(output)], -1) if outputs.is_complex(output) else output


def squared_error(target, output):
    return ops.mean(ops.square(ops.cast(output, "float32") - ops.reshape(target, output.shape)))


def optimizer_of(net, task):
    """Return the optimizer that the user names, else that of ``compile``, else plain SGD."""
    if task.optimizer is not None:
        return optimizers.construct(task, ("apply_gradients",))
    if model_layers.compiled_optimizer(net) is not None:
        return model_layers.compiled_optimizer(net)
    return keras.optimizers.SGD(task.learning_rate)
