"""GRU on IMDB in TensorFlow: tf.while_loop over time; XLA compiles training; it would make inference slower."""

import tensorflow as tf

LAYOUT = None


def network(task):
    return {}  # variables by name: forward computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        dense = array.ndim == 2 and name != "embedding.weight"
        net[name] = tf.Variable(array.T if dense else array, name=name)  # (in, out)
    return net


def forward(net, task, x):
    embedded = tf.gather(net["embedding.weight"], tf.transpose(x))  # (150, batch, 125)
    net = {name: tf.cast(net[name], task.dtype) for name in net if name != "embedding.weight"}
    x = tf.cast(embedded, task.dtype)
    x = x @ net["gru.input_weight"] + net["gru.input_bias"]  # (150, batch, 300): one product for all steps
    steps = tf.TensorArray(x.dtype, task.length).unstack(x)

    def cell(step, h):
        xr, xz, xn = tf.split(steps.read(step), 3, axis=1)
        hr, hz, hn = tf.split(h @ net["gru.hidden_weight"] + net["gru.hidden_bias"], 3, axis=1)
        r = tf.sigmoid(xr + hr)  # (batch, 100)
        z = tf.sigmoid(xz + hz)
        n = tf.tanh(xn + r * hn)
        return step + 1, (1 - z) * n + z * h

    h = tf.zeros((x.shape[1], task.hidden), x.dtype)
    _, h = tf.while_loop(lambda step, h: step < task.length, cell, (0, h), maximum_iterations=task.length)
    return tf.cast(h @ net["dense.weight"] + net["dense.bias"], tf.float32)  # (batch, 2)


def cross_entropy(net, task, x, y):
    logits = forward(net, task, x)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def gradients(net, task):
    @tf.function(jit_compile=True)
    def run(x, y):
        with tf.GradientTape() as tape:
            loss = cross_entropy(net, task, x, y)
        grads = tape.gradient(loss, net)
        return loss, {name: tf.convert_to_tensor(grad) for name, grad in grads.items()}

    return run


def training_step(net, task):
    mean = {name: tf.Variable(tf.zeros_like(weight)) for name, weight in net.items()}
    square = {name: tf.Variable(tf.zeros_like(weight)) for name, weight in net.items()}
    count = tf.Variable(0.0)

    @tf.function(jit_compile=True)
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = cross_entropy(net, task, x, y)
        grads = tape.gradient(loss, net)
        count.assign_add(1.0)
        for name, weight in net.items():
            # the embedding's gradient has only some rows, but Adam updates all
            grad = tf.convert_to_tensor(grads[name])
            mean[name].assign(task.beta1 * mean[name] + (1 - task.beta1) * grad)
            square[name].assign(task.beta2 * square[name] + (1 - task.beta2) * grad * grad)
            m = mean[name] / (1 - task.beta1**count)
            s = square[name] / (1 - task.beta2**count)
            weight.assign_sub(task.learning_rate * m / (tf.sqrt(s) + task.epsilon))
        return loss

    return step


def inference_step(net, task):
    @tf.function
    def step(x):
        return forward(net, task, x)

    return step


def stored(net):
    return net


def neutral(name, array):
    return array if name == "embedding.weight" else array.T
