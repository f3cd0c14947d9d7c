"""Pass a batch to a model: by position, or by name if an input has a name. Flags tell it whether it trains."""

from functools import partial

from stele_worker.models.signatures import parameters

TRAINING = ("train", "training", "is_training")
INFERENCE = ("deterministic", "use_running_average")
FLAGS = TRAINING + INFERENCE


def names(task):
    """Return the names of the inputs, and of the target if the model takes it; None for an input without a name."""
    target = [task.target.name] if task.target is not None and task.target.name else []
    return [each.name for each in task.inputs] + target


def make_caller(net, names, flags=None):
    """Return call(*values) -> the model's output. Values are positional up to the first name.

    ``flags`` are keyword arguments of every call, except those that are inputs.
    """
    flags = {name: value for name, value in (flags or {}).items() if name not in names}
    net = partial(net, **flags) if flags else net
    count = next((at for at, name in enumerate(names) if name), len(names))
    if count == len(names):
        return net
    return lambda *values: net(*values[:count], **dict(zip(names[count:], values[count:])))


def flags(function, training):
    """Return the keyword arguments that switch a function to training or inference, as far as it takes them."""
    return {name: training == (name in TRAINING) for name in flag_names(function)}


def flag_names(function):
    """Return the names of the flags that a function takes."""
    names = [each.name for each in parameters(function)]
    return [name for name in FLAGS if name in names]


def in_inference(function):
    """Return the function with the flags of inference: they are no inputs of the model."""
    chosen = flags(function, training=False)
    return partial(function, **chosen) if chosen else function
