"""GRU on IMDB in TensorFlow: on a CPU tf.while_loop over time, which XLA compiles; cuDNN's GRU on a GPU."""

import tensorflow as tf

from stele_worker.frameworks import tensorflow as framework
from stele_worker.frameworks.tensorflow import adam, make_training_step

LAYOUT = None
XLA = ("train", "infer")  # the loop over time is faster with it
CUDNN = True  # on a GPU; XLA cannot compile it


def network(task):
    return {}  # variables by name: forward computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        dense = array.ndim == 2 and name != "embedding.weight"
        net[name] = tf.Variable(array.T if dense else array, name=name)  # (in, out)
    return net


def predict(net, task, x):
    embedded = tf.gather(net["embedding.weight"], tf.transpose(x))  # (150, batch, 125)
    net = {name: tf.cast(net[name], task.dtype) for name in net if name != "embedding.weight"}
    x = tf.cast(embedded, task.dtype)
    recurrent = cudnn_gru if framework.uses_cudnn() else loop_gru
    return tf.cast(
        recurrent(net, task, x) @ net["dense.weight"] + net["dense.bias"], tf.float32
    )  # (batch, 2)


def loop_gru(net, task, x):
    x = x @ net["gru.input_weight"] + net["gru.input_bias"]  # (150, batch, 300): one product for all steps
    # one array for each gate: XLA computes a step of 64 samples in half of the time, compared with one array
    gates = [tf.TensorArray(x.dtype, task.length).unstack(gate) for gate in tf.split(x, 3, axis=2)]

    def cell(step, h):
        xr, xz, xn = [gate.read(step) for gate in gates]
        hr, hz, hn = tf.split(h @ net["gru.hidden_weight"] + net["gru.hidden_bias"], 3, axis=1)
        r = tf.sigmoid(xr + hr)  # (batch, 100)
        z = tf.sigmoid(xz + hz)
        n = tf.tanh(xn + r * hn)
        return step + 1, (1 - z) * n + z * h

    h = tf.zeros((x.shape[1], task.hidden), x.dtype)
    _, h = tf.while_loop(lambda step, h: step < task.length, cell, (0, h), maximum_iterations=task.length)
    return h  # (batch, 100)


def cudnn_gru(net, task, x):
    """The gates of cuDNN are in the order of the Task: reset, update, new; all weights (out, in), then all biases."""
    weights = [tf.transpose(net[name]) for name in ("gru.input_weight", "gru.hidden_weight")]
    arrays = [*weights, net["gru.input_bias"], net["gru.hidden_bias"]]
    h = tf.zeros((1, x.shape[1], task.hidden), x.dtype)
    h = tf.raw_ops.CudnnRNNV3(
        input=x,
        input_h=h,
        input_c=tf.zeros((), x.dtype),
        params=tf.concat([tf.reshape(array, [-1]) for array in arrays], 0),
        sequence_lengths=tf.fill([x.shape[1]], task.length),
        rnn_mode="gru",
        time_major=True,
    ).output_h
    return h[0]  # (batch, 100)


def loss(net, task):
    def compute(x, y):
        logits = predict(net, task, x)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))

    compute.variables = ()  # it changes none
    return compute


def trainable(net):
    return net


def training_step(net, task):
    return make_training_step(loss(net, task), net, adam(task, net), xla=not framework.uses_cudnn())


def stored(net):
    return net


def neutral(name, array):
    return array if name == "embedding.weight" else array.T
