"""Read the layers of a user's Keras model: inputs, dropout, names and outputs."""

import re

import keras

from stele_worker.models import building
from stele_worker.models.inputs import Input

BATCH, IMAGES, LENGTH = 32, 8, 64  # BATCH for rows, IMAGES for what has four axes or more
FLAGS = ("training", "mask")
RATES = ("rate", "dropout", "recurrent_dropout", "_dropout")


def inputs(model, source):
    """Return (inputs, where they come from) of a functional model; None for any other."""
    tensors = getattr(model, "inputs", None)
    if not tensors:
        return None
    struct = getattr(model, "_inputs_struct", None)
    names = (
        list(struct) if isinstance(struct, dict) and len(struct) == len(tensors) else [None] * len(tensors)
    )
    tensors = [struct[name] for name in names] if names[0] else tensors
    result = tuple(input_of(name, tensor, model) for name, tensor in zip(names, tensors))
    return result, "the signature and the first layer"


def input_of(name, tensor, model):
    """Return the Input of a symbolic tensor. A free first axis becomes a batch, other free axes a length."""
    axes = len(tensor.shape)
    batch = IMAGES if axes > 3 else BATCH
    shape = (tensor.shape[0] or batch,) + tuple(size or LENGTH for size in tensor.shape[1:])
    if "int" not in tensor.dtype and not embeddings_of(tensor, model):
        return Input(name, "float", shape)
    if "mask" in (name or tensor.name):
        return Input(name, "mask", shape)
    return Input(name, "int", shape, min(embeddings_of(tensor, model) or [0]) or None)


def embeddings_of(tensor, model):
    """Return the numbers of values of the embeddings that read this input."""
    result = [layer for layer in layers(model) if isinstance(layer, keras.layers.Embedding)]
    return [layer.input_dim for layer in result if reads(layer, tensor)]


def reads(layer, tensor):
    try:
        return layer.input is tensor
    except (AttributeError, ValueError):  # a layer that no graph holds
        return False


def vocabulary(model):
    return min([each.input_dim for each in layers(model) if hasattr(each, "input_dim")] or [0]) or None


def layers(model):
    """Return all layers, nested ones included."""
    return list(model._flatten_layers(include_self=False, recursive=True))


def function(net):
    return net.call


def needs_graph(model):
    """Return whether ``frameworks.keras`` cannot call the model: it takes several arguments, or no ``training``."""
    if getattr(model, "inputs", None):  # functional, or a Sequential that is built
        return False
    names = [each.name for each in building.parameters(model.call)]
    several = len([name for name in building.required(model.call) if name not in FLAGS]) > 1
    return several or "training" not in names


def functional(model, given):
    """Return a functional model around this one. It takes a list, or a dict if the inputs have names."""
    tensors = [keras.Input(each.shape[1:], each.shape[0], dtype_of(each), name=each.name) for each in given]
    if all(each.name for each in given):
        named = {each.name: tensor for each, tensor in zip(given, tensors)}
        return keras.Model(named, model(**named))
    return keras.Model(tensors, model(*tensors))


def dtype_of(each):
    return each.dtype or ("float32" if each.kind == "float" else "int32")


def disable_dropout(model):
    for layer in layers(model):
        for name in RATES:
            value = getattr(type(layer), name, None)
            if isinstance(getattr(layer, name, None), float) and not isinstance(value, property):
                setattr(layer, name, 0.0)


def ends_in_softmax(model):
    """Return whether the last layer returns probabilities, as in keras.applications."""
    result = [layer for layer in layers(model) if not isinstance(layer, keras.Model)]
    last = result[-1] if result else None
    return (
        isinstance(last, keras.layers.Softmax)
        or getattr(last, "activation", None) is keras.activations.softmax
    )


def visible_layers(model):
    """Return the names of the layers of a functional model that return one tensor, in order of execution."""
    if not (isinstance(model, keras.Sequential) or hasattr(model, "operations")) or not getattr(
        model, "inputs", None
    ):
        return []
    skipped = keras.Model, keras.layers.InputLayer
    return [layer.name for layer in model.layers if not isinstance(layer, skipped) and has_one_output(layer)]


def has_one_output(layer):
    try:
        return hasattr(layer.output, "shape")
    except (AttributeError, ValueError):  # called several times, or never
        return False


def parameter_names(net, variables):
    """Return a name for each variable: its path, with layers numbered in the model, not in the process."""
    numbers, result = layer_names(net), []
    for variable in variables:
        name = "/".join(numbers.get(part, part) for part in variable.path.split("/"))
        again = sum(each.split("#")[0] == name for each in result)
        result.append("{}#{}".format(name, again + 1) if again else name)
    return result


def layer_names(net):
    """Return {name: name with a number in the model} for the layers that Keras named after their class."""
    counts, result = {}, {}
    for layer in [net] + layers(net):
        base = snake_case(type(layer).__name__)
        if layer.name not in result and re.match(base + r"(_\d+)?$", layer.name):
            count = counts[base] = counts.get(base, -1) + 1
            result[layer.name] = "{}_{}".format(base, count) if count else base
    return result


def snake_case(name):
    """Return a class name in snake case. Source: keras/src/utils/naming.py, to_snake_case."""
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
