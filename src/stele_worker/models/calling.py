"""Pass a batch to a model: by position, or by name if an input has a name."""


def names(task):
    """Return the names of the inputs, and of the target if the model takes it; None for an input without a name."""
    own = [task.target.name] if task.target is not None and task.target.name else []
    return [each.name for each in task.inputs] + own


def make_caller(net, names):
    """Return call(*values) -> the model's output. Values are positional up to the first name."""
    count = next((at for at, name in enumerate(names) if name), len(names))
    if count == len(names):
        return net
    return lambda *values: net(*values[:count], **dict(zip(names[count:], values[count:])))
