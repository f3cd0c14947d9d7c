"""Infer the input of a model from its first layer, by the name of the layer's class and by its attributes.

So this serves PyTorch, Paddle and flax.nnx alike, and imports none of them.
"""

from stele_worker.models.inputs import Input

IMAGES, ROWS, SEQUENCES, TOKENS = 8, 32, 16, (16, 64)  # batches; of tokens their length too
SIZE, LENGTH = 64, 64  # of an image, of a sequence
CHANNELS = ("in_channels", "_in_channels")
FEATURES = ("in_features", "_in_features", "input_size", "embed_dim")
VALUES = ("num_embeddings", "_num_embeddings", "input_dim")


def infer(layers, size=SIZE, channels_last=False):
    """Return the Input of the first layer whose sizes are known, or None. ``layers`` are in order of definition."""
    for layer in layers:
        result = input_of(layer, size, channels_last)
        if result is not None:
            return result
    return None


def input_of(layer, size, channels_last):
    name, channels = type(layer).__name__.lower(), first(layer, CHANNELS)
    features, values = first(layer, FEATURES), first(layer, VALUES)
    if "embed" in name and values:
        return Input(None, "int", TOKENS, values)
    if name.startswith(("conv", "lazyconv")) and (channels or features):
        return image(layer, channels or features, size, channels_last)
    if name in ("gru", "lstm", "rnn", "simplernn", "multiheadattention") and features:
        return Input(None, "float", (SEQUENCES, LENGTH, features))
    if name == "linear" and (features or hasattr(layer, "weight")):
        return Input(None, "float", (ROWS, features or int(layer.weight.shape[0])))  # Paddle: (in, out)
    if name.startswith(("batchnorm", "layernorm")) and first(layer, ("num_features",)):
        return Input(None, "float", (ROWS, layer.num_features))
    return None


def image(layer, channels, size, channels_last):
    """Return the Input of a convolution; its class or its kernel size tells the number of axes."""
    name, kernel = type(layer).__name__, getattr(layer, "kernel_size", (3, 3))
    axes = 1 if isinstance(kernel, int) else len(kernel)
    axes = int(name[4]) if name[4:5].isdigit() else axes
    sizes = (size,) * axes if axes < 3 else (16,) * axes
    return Input(None, "float", (IMAGES,) + (sizes + (channels,) if channels_last else (channels,) + sizes))


def vocabulary(layers):
    """Return the number of values of the smallest embedding, or None."""
    result = [first(layer, VALUES) for layer in layers if "embed" in type(layer).__name__.lower()]
    return min([each for each in result if each] or [None])


def first(layer, names):
    """Return the first of these attributes that is a positive int, or None."""
    values = (getattr(layer, name, None) for name in names)
    return next((value for value in values if isinstance(value, int) and value > 0), None)
