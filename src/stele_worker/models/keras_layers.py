"""The layers of a user's Keras model: its inputs, its dropout, what comes out of each."""

import re

import keras

from stele_worker.models import building
from stele_worker.models.inputs import Input

BATCH, IMAGES, LENGTH = 32, 8, 64  # BATCH for rows, IMAGES for what has four axes or more
FLAGS = ("training", "mask")
RATES = ("rate", "dropout", "recurrent_dropout", "_dropout")


def inputs(model, source):
    """(inputs, where they come from) by what a functional or built model was told; None of any other."""
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
    """Free axes become a batch, and then lengths."""
    axes = len(tensor.shape)
    batch = IMAGES if axes > 3 else BATCH
    shape = (tensor.shape[0] or batch,) + tuple(size or LENGTH for size in tensor.shape[1:])
    if "int" not in tensor.dtype and not embeddings_of(tensor, model):
        return Input(name, "float", shape)
    if "mask" in (name or tensor.name):
        return Input(name, "mask", shape)
    return Input(name, "int", shape, min(embeddings_of(tensor, model) or [0]) or None)


def embeddings_of(tensor, model):
    """How many values each embedding has that reads this input."""
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
    """All layers, those inside others too."""
    return list(model._flatten_layers(include_self=False, recursive=True))


def function(net):
    return net.call


def needs_graph(model):
    """Whether Keras' loops cannot call the model as it is: it takes its inputs one by one, or no ``training``."""
    if model.inputs or getattr(model, "_functional", None) is not None:
        return False
    names = [each.name for each in building.parameters(model.call)]
    several = len([name for name in building.required(model.call) if name not in FLAGS]) > 1
    return several or "training" not in names


def functional(model, given):
    """The model as a functional one, which takes a list, or a dict where the inputs have names."""
    tensors = [keras.Input(each.shape[1:], each.shape[0], dtype_of(each), name=each.name) for each in given]
    if all(each.name for each in given):
        named = {each.name: tensor for each, tensor in zip(given, tensors)}
        return keras.Model(named, model(**named))
    return keras.Model(tensors, model(*tensors))


def dtype_of(each):
    return "float32" if each.kind == "float" else "int32"


def disable_dropout(model):
    for layer in layers(model):
        for name in RATES:
            value = getattr(type(layer), name, None)
            if isinstance(getattr(layer, name, None), float) and not isinstance(value, property):
                setattr(layer, name, 0.0)


def ends_in_softmax(model):
    """Whether the last layer gives probabilities already, as those of keras.applications do."""
    result = [layer for layer in layers(model) if not isinstance(layer, keras.Model)]
    last = result[-1] if result else None
    return (
        isinstance(last, keras.layers.Softmax)
        or getattr(last, "activation", None) is keras.activations.softmax
    )


def visible_layers(model):
    """Names of the layers of a functional model that give one tensor, in order of execution."""
    if not (isinstance(model, keras.Sequential) or hasattr(model, "operations")) or not model.inputs:
        return []
    skipped = keras.Model, keras.layers.InputLayer
    return [layer.name for layer in model.layers if not isinstance(layer, skipped) and has_one_output(layer)]


def has_one_output(layer):
    try:
        return hasattr(layer.output, "shape")
    except (AttributeError, ValueError):  # called several times, or never
        return False


def parameter_names(net, variables):
    """A name for each variable: its path. Keras numbers layers in a process, here they are numbered in the model."""
    numbers, result = layer_names(net), []
    for variable in variables:
        name = "/".join(numbers.get(part, part) for part in variable.path.split("/"))
        again = sum(each.split("#")[0] == name for each in result)
        result.append("{}#{}".format(name, again + 1) if again else name)
    return result


def layer_names(net):
    """{name: name} for the layers that Keras has named by their class, with numbers from the first of the model on."""
    counts, result = {}, {}
    for layer in [net] + layers(net):
        base = snake_case(type(layer).__name__)
        if layer.name not in result and re.match(base + r"(_\d+)?$", layer.name):
            count = counts[base] = counts.get(base, -1) + 1
            result[layer.name] = "{}_{}".format(base, count) if count else base
    return result


def snake_case(name):
    """As Keras does it. Source: keras/src/utils/naming.py, to_snake_case."""
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
