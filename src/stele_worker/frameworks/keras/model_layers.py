"""Read the layers of a user's model of Keras 2 or 3: inputs, dropout, names and outputs."""

import importlib
import re
import weakref

from stele_worker.models import own_training, specs
from stele_worker.models.inputs import Input
from stele_worker.models.signatures import parameters, required

BATCH, IMAGES, LENGTH = 32, 8, 64  # BATCH for rows, IMAGES for what has four axes or more
FLAGS = ("training", "mask")
LOSSES = {  # of ``compile``: the kind of their targets
    "SparseCategoricalCrossentropy": "int",
    "sparse_categorical_crossentropy": "int",
    "MeanSquaredError": "float",
    "mean_squared_error": "float",
    "MeanAbsoluteError": "float",
    "mean_absolute_error": "float",
    "Huber": "float",
    "huber": "float",
    "LogCosh": "float",
    "log_cosh": "float",
}
RATES = ("rate", "dropout", "recurrent_dropout", "_dropout")
wrapped = weakref.WeakKeyDictionary()  # a model of ``functional``: the user's model inside


def keras_of(model):
    """Return the Keras library of a model, which may be keras, tf_keras or tensorflow.keras."""
    return importlib.import_module(specs.library(model))


def inputs(model, source):
    """Return (inputs, where they come from) of a functional model; None for any other."""
    tensors = getattr(model, "inputs", None)
    if not tensors:
        return None
    # Keras 3 has the first, Keras 2 the second
    struct = getattr(model, "_inputs_struct", getattr(model, "_nested_inputs", None))
    names = list(struct) if isinstance(struct, dict) and len(struct) == len(tensors) else [None] * len(tensors)
    tensors = [struct[name] for name in names] if names[0] else tensors
    result = tuple(input_of(name, tensor, model) for name, tensor in zip(names, tensors))
    return result, "the signature and the first layer"


def input_of(name, tensor, model):
    """Return the Input of a symbolic tensor. A free first axis becomes a batch, other free axes a length."""
    axes = len(tensor.shape)
    batch = IMAGES if axes > 3 else BATCH
    shape = (tensor.shape[0] or batch,) + tuple(size or LENGTH for size in tensor.shape[1:])
    if "int" not in str(tensor.dtype) and not embeddings_of(tensor, model):
        return Input(name, "float", shape)
    if "mask" in (name or tensor.name):
        return Input(name, "mask", shape)
    return Input(name, "int", shape, min(embeddings_of(tensor, model) or [0]) or None)


def embeddings_of(tensor, model):
    """Return the numbers of values of the embeddings that read this input."""
    embedding = keras_of(model).layers.Embedding
    return [layer.input_dim for layer in layers(model) if isinstance(layer, embedding) and reads(layer, tensor)]


def reads(layer, tensor):
    try:
        return layer.input is tensor
    except (AttributeError, ValueError):  # a layer that no graph holds
        return False


def vocabulary(model):
    return min([each.input_dim for each in layers(model) if hasattr(each, "input_dim")] or [0]) or None


def layers(model):
    """Return all layers: those of the model in order, then those inside of them, and so on."""
    result = {id(layer): layer for layer in own_layers(model)}
    waiting = list(result.values())
    for layer in waiting:
        inner = {id(each): each for each in own_layers(layer) if id(each) not in result}
        result.update(inner)
        waiting += inner.values()
    return waiting


def own_layers(layer):
    return list(layer._flatten_layers(include_self=False, recursive=False))


def function(net):
    return net.call


def needs_graph(model):
    """Return whether ``frameworks.keras`` cannot call the model: it takes several arguments, or no ``training``."""
    if getattr(model, "inputs", None):  # functional, or a Sequential that is built
        return False
    names = [each.name for each in parameters(model.call)]
    several = len([name for name in required(model.call) if name not in FLAGS]) > 1
    return several or "training" not in names


def functional(model, given):
    """Return a functional model around this one. It takes a list, or a dict if the inputs have names."""
    keras = keras_of(model)
    tensors = [keras.Input(each.shape[1:], each.shape[0], dtype=dtype_of(each), name=each.name) for each in given]
    if all(each.name for each in given):
        named = {each.name: tensor for each, tensor in zip(given, tensors)}
        result = keras.Model(named, model(**named))
    else:
        result = keras.Model(tensors, model(*tensors))
    wrapped[result] = model
    return result


def dtype_of(each):
    return each.dtype or ("float32" if each.kind == "float" else "int32")


def disable_dropout(model):
    """Set the rates of Keras' layers, and of subclasses of them, to 0. Other layers may mean other rates."""
    for layer in layers(model):
        for name in RATES:
            value = getattr(type(layer), name, None)
            if not takes_rate(layer, name.strip("_")) or isinstance(value, property):
                continue
            if isinstance(getattr(layer, name, None), float):
                setattr(layer, name, 0.0)


def takes_rate(layer, name):
    """Return whether a class of Keras, from which a layer is made, has an argument of this name."""
    own = [cls for cls in type(layer).__mro__ if cls.__module__.split(".")[0] in own_training.LIBRARIES]
    return any(each.name == name for cls in own for each in parameters(cls))


def why_untrained(net, number=1):
    """Return why Stele does not train a model with ``number`` outputs as ``fit`` does, or None."""
    model = wrapped.get(net, net)
    reason = own_training.describe(model, own_training.KERAS)
    if reason is not None or not is_compiled(model):
        return reason
    if number > 1:
        return "it is compiled with a loss for {} outputs".format(number)
    if compiled_loss(model) is None:
        message = "it is compiled with the loss {:.60}, and Stele does not know which targets this loss takes"
        return message.format(name_of(model.loss))
    return None


def name_of(chosen):
    """Return the name of a loss of ``compile``, which may be a text, a function or an object."""
    if isinstance(chosen, (str, list, dict)):
        return str(chosen)
    return getattr(chosen, "__name__", type(chosen).__name__)


def is_compiled(model):
    # Keras 3 has the first, Keras 2 the second
    return bool(getattr(model, "compiled", False) or getattr(model, "_is_compiled", False))


def compiled_loss(net):
    """Return (name, function of target and output, kind of the target) of the loss of ``compile``.

    None without one, and for one that is not in LOSSES.
    """
    model = wrapped.get(net, net)
    chosen = model.loss if is_compiled(model) else None
    if not isinstance(chosen, str) and not callable(chosen):
        return None
    try:
        function = keras_of(model).losses.get(chosen)
    except ValueError:
        return None
    owners = [function] if hasattr(function, "__name__") else type(function).__mro__
    for owner in owners:
        library = owner.__module__.split(".")[0] in own_training.LIBRARIES
        if library and owner.__name__ in LOSSES:
            return owner.__name__, function, LOSSES[owner.__name__]
    return None


def compiled_optimizer(net):
    """Return the optimizer of ``compile``, or None."""
    model = wrapped.get(net, net)
    return model.optimizer if is_compiled(model) else None


def target_kind(net):
    """Return the kind of target that the loss of ``compile`` needs; None without one."""
    chosen = compiled_loss(net)
    return chosen and chosen[2]


def loss_name(net, optimizer):
    """Return ``mean_squared_error and Adam, as compiled``; None if the model is not compiled."""
    chosen = compiled_loss(net)
    if chosen is None:
        return None
    return "{} and {}, as compiled".format(chosen[0], optimizer or type(compiled_optimizer(net)).__name__)


def ends_in_softmax(model):
    """Return whether the last layer returns probabilities, as in keras.applications."""
    keras, last = keras_of(model), model
    while isinstance(last, keras.Model) and own_layers(last):
        last = own_layers(last)[-1]
    return isinstance(last, keras.layers.Softmax) or getattr(last, "activation", None) is keras.activations.softmax


def visible_layers(model):
    """Return the names of the layers of a functional model that return one tensor, in order of execution."""
    keras = keras_of(model)
    # Keras 3 has the first, Keras 2 the second
    graph = hasattr(model, "operations") or getattr(model, "_is_graph_network", False)
    if not (isinstance(model, keras.Sequential) or graph) or not getattr(model, "inputs", None):
        return []
    skipped = keras.Model, keras.layers.InputLayer
    return [layer.name for layer in model.layers if not isinstance(layer, skipped) and has_one_output(layer)]


def has_one_output(layer):
    try:
        return hasattr(layer.output, "shape")
    except (AttributeError, ValueError):  # called several times, or never
        return False


def parameter_names(net, variables):
    """Return a name for each variable: its path, with layers numbered in the model, not in the process.

    The names of models are left out: Keras 2 does not have all of them.
    """
    numbers, result = layer_names(net), []
    models = {each.name for each in [net] + layers(net) if isinstance(each, keras_of(net).Model)}
    for variable in variables:
        path = getattr(variable, "path", variable.name.split(":")[0])
        name = "/".join(numbers.get(part, part) for part in path.split("/") if part not in models)
        again = sum(each.split("#")[0] == name for each in result)
        result.append("{}#{}".format(name, again + 1) if again else name)
    return result


def layer_names(net):
    """Return {name: name with a number in the model} for the layers that Keras named after their class."""
    counts, result = {}, {}
    for layer in [net] + layers(net):
        # Bidirectional has a forward_lstm and a backward_lstm
        pattern = r"((forward_|backward_)?{})(_\d+)?$".format(snake_case(type(layer).__name__))
        found = re.match(pattern, layer.name)
        if layer.name not in result and found:
            base = found.group(1)
            count = counts[base] = counts.get(base, -1) + 1
            result[layer.name] = "{}_{}".format(base, count) if count else base
    return result


def snake_case(name):
    """Return a class name in snake case. Source: keras/src/utils/naming.py, to_snake_case."""
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
