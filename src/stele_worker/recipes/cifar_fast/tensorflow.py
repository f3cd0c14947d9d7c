"""ResNet-9 in TensorFlow: one tf.function per step, channels last, oneDNN or cuDNN rather than XLA."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow import make_training_step, zeros_like
from stele_worker.layers import outputs
from stele_worker.tasks.cifar_fast import (
    AVERAGE_EVERY,
    AVERAGE_KEEPS,
    POOLED,
    RESIDUAL,
    choices,
    is_trained,
    learning_rates,
    rate_and_decay,
)

LAYOUT = "NHWC"


def network(task):
    return {"weights": {}, "others": {}}  # variables; others are running statistics and the whitening filters


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        kind = "weights" if is_trained(name) else "others"
        net[kind][name] = tf.Variable(array.T if array.ndim == 2 else array, name=name)
    return net


def convolution(x, kernel):
    return tf.nn.conv2d(x, tf.cast(kernel, x.dtype), strides=1, padding="SAME")


def pool(x, size):
    return tf.nn.max_pool2d(x, ksize=size, strides=size, padding="VALID")


def normalise(net, name, x, task, training):
    """Normalise in float32: in training by the statistics of the batch or its ghost batches."""
    running = [net["others"][name + ".norm.running_" + one] for one in ("mean", "var")]
    scale, shift = net["weights"].get(name + ".norm.weight"), net["weights"][name + ".norm.bias"]
    if not training:
        y = tf.nn.batch_normalization(tf.cast(x, tf.float32), *running, shift, scale, task.epsilon)
        return tf.cast(y, x.dtype)
    ghost = choices(task).ghost or x.shape[0]
    # image i is in group i modulo groups
    folded = tf.reshape(tf.cast(x, tf.float32), (ghost, x.shape[0] // ghost, *x.shape[1:]))
    mean = tf.reduce_mean(folded, (0, 2, 3), keepdims=True)
    # on a CPU, tf.nn.moments reads the images twice more
    variance = tf.reduce_mean(tf.square(folded), (0, 2, 3), keepdims=True) - tf.square(mean)
    count = ghost * x.shape[1] * x.shape[2]
    for value, statistic in zip(running, (mean, variance * count / (count - 1))):
        of_batch = tf.reshape(tf.reduce_mean(statistic, 1), (-1,))
        value.assign_add(task.statistics * (of_batch - value))
    folded = tf.nn.batch_normalization(folded, mean, variance, shift, scale, task.epsilon)
    return tf.cast(tf.reshape(folded, x.shape), x.dtype)


def celu(x, alpha):
    return alpha * tf.nn.elu(x / alpha)  # tf.nn.elu is one operation, also in the gradient


def layer(net, name, x, task, training):
    """Apply a convolution, its normalisation, the activation, and the pool of some layers."""
    chosen = choices(task)
    x = convolution(x, net["weights"][name + ".conv.weight"])
    if name in POOLED and chosen.pool_first:
        x = pool(x, 2)
    x = normalise(net, name, x, task, training)
    x = celu(x, chosen.alpha) if chosen.alpha else tf.nn.relu(x)
    return pool(x, 2) if name in POOLED and not chosen.pool_first else x


def forward(net, task, x, training=False):
    x = tf.cast(x, task.dtype)  # (batch, 32, 32, 3)
    if choices(task).whitens:
        x = convolution(x, net["others"]["whiten.weight"])  # (batch, 32, 32, 27)
    for name in ("prep", "layer1", "layer2", "layer3"):  # (batch, 32, 32, 64) to (batch, 4, 4, 512)
        x = layer(net, name, x, task, training)
        if name in RESIDUAL:
            y = layer(net, name + ".residual1", x, task, training)
            x = x + layer(net, name + ".residual2", y, task, training)
    x = tf.reshape(pool(x, 4), (-1, 8 * task.width))
    x = x @ tf.cast(net["weights"]["linear.weight"], x.dtype)
    return tf.cast(x, tf.float32) * choices(task).factor  # (batch, 10)


def predict(net, task, x):
    """Return logits: those of the moving average, and the mean with those of the mirror image."""
    evaluated = net.get("average", net)
    logits = forward(evaluated, task, x)
    return (logits + forward(evaluated, task, x[:, :, ::-1])) / 2 if choices(task).flips else logits


def loss(net, task):
    smoothing = choices(task).smoothing

    def compute(x, y):
        logarithms = tf.nn.log_softmax(forward(net, task, x, True))
        right = tf.reduce_mean(tf.gather(logarithms, y, batch_dims=1))
        return -(1 - smoothing) * right - smoothing * tf.reduce_mean(logarithms)

    compute.variables = net["others"]
    return compute


def trainable(net):
    return net["weights"]


def nesterov(task, weights, count):
    """Return update(gradients): Nesterov's momentum with the learning rate of each step inside the velocity."""
    velocity, rates = zeros_like(weights), tf.constant(learning_rates(task))

    def update(grads):
        rate = rates[tf.minimum(count, len(rates) - 1)]
        for name, weight in weights.items():
            factor, decay = rate_and_decay(task, name)
            change = -factor * rate * (grads[name] + decay * weight)
            moved = velocity[name].assign(task.momentum * velocity[name] + change)
            weight.assign_add(task.momentum * moved + change)

    update.variables = velocity
    return update


def update_average(net):
    for kind, averages in net["average"].items():
        for name, average in averages.items():
            average.assign(AVERAGE_KEEPS * average + (1 - AVERAGE_KEEPS) * net[kind][name])
    return True


def training_step(net, task):
    count = tf.Variable(0)
    move = nesterov(task, net["weights"], count)
    if choices(task).average:
        kinds = ("weights", "others")
        net["average"] = {
            kind: {name: tf.Variable(value) for name, value in net[kind].items()} for kind in kinds
        }

    def update(grads):
        move(grads)
        count.assign_add(1)
        if "average" in net:
            tf.cond(count % AVERAGE_EVERY == 1, lambda: update_average(net), lambda: False)

    update.variables = move.variables, count, net.get("average", ())
    return make_training_step(loss(net, task), net["weights"], update)


def stored(net):
    return {**net["weights"], **net["others"]}


def neutral(name, array):
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def activations(net, task):
    return outputs(globals(), ("layer",), lambda x: forward(net, task, x))
