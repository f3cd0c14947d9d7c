"""What the steps of every backend need of a network of Keras: its call, its losses, and the values of its variables."""

import weakref

import keras

pending = weakref.WeakKeyDictionary()  # JAX: network -> (variables, newer values from training)


def one_or_all(inputs):
    """Return the inputs as a model takes them: a list, or the only one."""
    return inputs[0] if len(inputs) == 1 else list(inputs)


def training_loss(net, loss):
    """Return compute(*inputs, y) -> the loss of a network in training. loss(y, output) is that of its output."""

    def compute(*arrays):
        output = net(one_or_all(arrays[:-1]), training=True)
        return added(loss(arrays[-1], output), net.losses)

    return compute


def added(value, losses):
    """Return a loss with those of a network's layers, its regularisers and ``add_loss``, as ``fit`` adds them."""
    return value + sum(map(keras.ops.sum, losses)) if losses else value


def values(variables):
    return [variable.value for variable in variables]


def parameters(net):
    """Return the values of parameters and running statistics, in the order of net.weights."""
    write_back(net)
    return values(net.weights)


def write_back(net):
    """Copy the newest values of training on JAX to a network's variables."""
    for variables, numbers in zip(*pending.pop(net, ((), ()))):
        for variable, number in zip(variables, numbers):
            variable.assign(number)
