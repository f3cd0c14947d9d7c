"""How a batch is handed to a model: by position, and by name where an input has one."""


def names(task):
    """The names of a batch: of the inputs, and of the target if the model takes it."""
    own = [task.target.name] if task.target is not None and task.target.name else []
    return [each.name for each in task.inputs] + own


def make_caller(net, names):
    """call(*values) -> what the model returns; by position until the first name."""
    count = next((at for at, name in enumerate(names) if name), len(names))
    if count == len(names):
        return net
    return lambda *values: net(*values[:count], **dict(zip(names[count:], values[count:])))
