"""CNN on CIFAR-10 in MXNet's symbols: a Module, NCHW."""

import mxnet as mx

from stele_worker.frameworks.mxnet_module import (
    arrays,
    bind_for_training,
    cross_entropy,
    put,
    with_softmax_output,
)

LAYOUT = "NCHW"


def convolution(x, name, channels):
    weight, bias = mx.sym.var(name + ".weight"), mx.sym.var(name + ".bias")
    return mx.sym.Convolution(
        x, weight, bias, kernel=(3, 3), stride=(1, 1), pad=(1, 1), num_filter=channels, no_bias=False
    )


def pool(x):
    return mx.sym.Pooling(
        x, kernel=(2, 2), stride=(2, 2), pad=(0, 0), pool_type="max", pooling_convention="valid"
    )


def dense(x, name, outputs):
    weight, bias = mx.sym.var(name + ".weight"), mx.sym.var(name + ".bias")
    return mx.sym.FullyConnected(x, weight, bias, num_hidden=outputs, no_bias=False, flatten=True)


def network(task):
    x = mx.sym.var("x")  # (batch, 3, 32, 32)
    # not Activation: oneDNN fuses it with the convolution, and for these channels that takes 4 % longer
    x = mx.sym.relu(convolution(x, "conv1", 50))  # (batch, 50, 32, 32)
    x = mx.sym.relu(pool(convolution(x, "conv2", 50)))  # (batch, 50, 16, 16)
    x = mx.sym.Dropout(x, p=task.dropout[0], mode="training")
    x = mx.sym.relu(convolution(x, "conv3", 100))  # (batch, 100, 16, 16)
    x = mx.sym.relu(pool(convolution(x, "conv4", 100)))  # (batch, 100, 8, 8)
    x = mx.sym.Dropout(x, p=task.dropout[1], mode="training")
    x = mx.sym.relu(dense(x, "dense1", 512))  # (batch, 512), from (batch, 6400)
    x = mx.sym.Dropout(x, p=task.dropout[2], mode="training")
    return {"logits": dense(x, "dense2", 10), "arrays": ({}, {}), "module": None}  # (batch, 10)


def load(net, weights):
    parameters, _ = net["arrays"]
    parameters.update({name: put(array) for name, array in weights.items()})
    return net


OUTPUT = "logits"  # the symbol that inference computes


def training_step(net, task):
    module = None

    def step(x, y):
        nonlocal module
        if module is None:
            # MXNet has the learning rate inside the velocity, which is equivalent at a constant rate
            optimiser = mx.optimizer.SGD(
                learning_rate=task.learning_rate, momentum=task.momentum, wd=0.0, rescale_grad=1 / len(x)
            )
            module = bind_for_training(net, with_softmax_output(net["logits"]), optimiser, x, y)
        module.forward_backward(mx.io.DataBatch([x], [y]))
        module.update()
        return cross_entropy(module.get_outputs()[0], y)

    return step


def stored(net):
    parameters, statistics = arrays(net)
    return dict(parameters, **statistics)


def neutral(name, array):
    return array  # MXNet has the Task's layouts
