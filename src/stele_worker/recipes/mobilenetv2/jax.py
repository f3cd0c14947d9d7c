"""MobileNetV2 in JAX: one jitted step, channels last, weights and optimiser state donated."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.nn import log_softmax, relu6

from stele_worker.frameworks.jax import dropout, make_training_step, sgd
from stele_worker.layers import outputs
from stele_worker.tasks.mobilenetv2 import blocks

LAYOUT = "NHWC"


def unit(net, name, x, task, new_running, stride=1):
    """Convolve, and normalise in float32. In training ``new_running`` receives the running statistics."""
    kernel = net["weights"][name + ".conv.weight"].astype(x.dtype)  # (height, width, in / groups, out)
    edge, groups = kernel.shape[0] // 2, x.shape[-1] // kernel.shape[2]
    padding, layout = ((edge, edge), (edge, edge)), ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(
        x, kernel, (stride, stride), padding, dimension_numbers=layout, feature_group_count=groups
    )
    dtype, x = x.dtype, x.astype(jnp.float32)
    names = name + ".norm.running_mean", name + ".norm.running_var"
    mean, variance = net["running"][names[0]], net["running"][names[1]]
    if new_running is not None:
        mean = x.mean((0, 1, 2))
        variance = jnp.square(x).mean((0, 1, 2)) - jnp.square(mean)  # one pass over x for both
        count = x.size // x.shape[-1]
        for running, new in zip(names, (mean, variance * count / (count - 1))):
            new_running[running] = (1 - task.statistics) * net["running"][running] + task.statistics * new
    scale = net["weights"][name + ".norm.weight"] * lax.rsqrt(variance + task.epsilon)
    return ((x - mean) * scale + net["weights"][name + ".norm.bias"]).astype(dtype)


def block(net, name, x, task, new_running, width, channels, stride):
    y = x
    if width != x.shape[-1]:
        y = relu6(unit(net, name + ".expand", y, task, new_running))
    y = relu6(unit(net, name + ".depthwise", y, task, new_running, stride))
    y = unit(net, name + ".project", y, task, new_running)
    return x + y if stride == 1 and x.shape[-1] == channels else y


def forward(net, task, x, new_running=None, key=None):
    x = x.astype(task.dtype)  # (batch, 224, 224, 3)
    x = relu6(unit(net, "stem", x, task, new_running, 2))  # (batch, 112, 112, 32)
    for name, _, width, channels, stride in blocks():
        x = block(net, name, x, task, new_running, width, channels, stride)
    x = relu6(unit(net, "head", x, task, new_running))  # (batch, 7, 7, 1280)
    x = dropout(x.astype(jnp.float32).mean((1, 2)), task.dropout[0], key).astype(task.dtype)
    kernel, bias = net["weights"]["classifier.weight"], net["weights"]["classifier.bias"]
    return (x @ kernel.astype(x.dtype) + bias.astype(x.dtype)).astype(jnp.float32)  # (batch, 1000)


def network(task):
    return {"weights": {}, "running": {}}  # by name: forward computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        kind = "running" if ".running_" in name else "weights"
        net[kind][name] = jnp.array(array.T if array.ndim == 2 else array)
    return net


def predict(net, task, x):
    return forward(net, task, x)


def loss(net, task):
    def compute(weights, state, x, y):
        (running, key), new_running = state, {}
        key, mask = jax.random.split(key)
        logits = forward({"weights": weights, "running": running}, task, x, new_running, mask)
        value = -jnp.take_along_axis(log_softmax(logits), y[:, None], axis=1).mean()
        return value, (new_running, key)

    return compute


def parts(net, task):
    key = jax.random.key(task.seed, impl="rbg")  # compiles and draws faster than threefry
    return net["weights"], (net["running"], key)


def training_step(net, task):
    def keep(weights, state):
        net.update(weights=weights, running=state[0])

    return make_training_step(loss(net, task), parts(net, task), sgd(task), keep)


def stored(net):
    return {**net["weights"], **net["running"]}


def neutral(name, array):
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(globals(), ("block",), lambda x: forward(net, task, x))
