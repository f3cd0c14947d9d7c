"""GRU on IMDB in TensorFlow: on a CPU tf.while_loop over time, which XLA compiles; cuDNN's GRU on a GPU."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow.recipe import Adam, Embedding, Linear, TensorFlowRecipe


class GRU(tf.Module):
    def __init__(self, task, on_cudnn):
        super().__init__()
        self.task, self.run = task, self.by_cudnn if on_cudnn else self.in_loop
        self.input_weight = tf.Variable(tf.zeros((task.embedding, 3 * task.hidden)))
        self.hidden_weight = tf.Variable(tf.zeros((task.hidden, 3 * task.hidden)))
        self.input_bias = tf.Variable(tf.zeros(3 * task.hidden))
        self.hidden_bias = tf.Variable(tf.zeros(3 * task.hidden))

    def __call__(self, x):
        arrays = self.input_weight, self.hidden_weight, self.input_bias, self.hidden_bias
        return self.run(x, *[tf.cast(array, x.dtype) for array in arrays])

    def in_loop(self, x, input_weight, hidden_weight, input_bias, hidden_bias):
        length = self.task.length
        x = x @ input_weight + input_bias  # (150, batch, 300): one product for all steps
        # one array for each gate: XLA computes a step of 64 samples in half of the time, compared with one array
        gates = [tf.TensorArray(x.dtype, length).unstack(gate) for gate in tf.split(x, 3, axis=2)]

        def cell(step, h):
            xr, xz, xn = [gate.read(step) for gate in gates]
            hr, hz, hn = tf.split(h @ hidden_weight + hidden_bias, 3, axis=1)
            r = tf.sigmoid(xr + hr)  # (batch, 100)
            z = tf.sigmoid(xz + hz)
            n = tf.tanh(xn + r * hn)
            return step + 1, (1 - z) * n + z * h

        h = tf.zeros((x.shape[1], self.task.hidden), x.dtype)
        _, h = tf.while_loop(lambda step, h: step < length, cell, (0, h), maximum_iterations=length)
        return h  # (batch, 100)

    def by_cudnn(self, x, input_weight, hidden_weight, *biases):
        # cuDNN takes all weights (out, in), then all biases. Its gates are in the order of the Task: reset, update, new
        arrays = [tf.transpose(input_weight), tf.transpose(hidden_weight), *biases]
        h = tf.zeros((1, x.shape[1], self.task.hidden), x.dtype)
        h = tf.raw_ops.CudnnRNNV3(
            input=x,
            input_h=h,
            input_c=tf.zeros((), x.dtype),
            params=tf.concat([tf.reshape(array, [-1]) for array in arrays], 0),
            sequence_lengths=tf.fill([x.shape[1]], self.task.length),
            rnn_mode="gru",
            time_major=True,
        ).output_h
        return h[0]  # (batch, 100)


class Classifier(tf.Module):
    def __init__(self, task, on_cudnn):
        super().__init__()
        self.dtype = task.dtype
        self.embedding = Embedding(task.vocabulary, task.embedding)
        self.gru = GRU(task, on_cudnn)
        self.dense = Linear(task.hidden, 2)

    def __call__(self, x, record, training=None):
        x = tf.cast(self.embedding(tf.transpose(x)), self.dtype)  # (150, batch, 125)
        return tf.cast(self.dense(self.gru(x)), tf.float32)  # (batch, 2)


class Recipe(TensorFlowRecipe):
    XLA = True  # the loop over time is faster with it

    def network(self, task):
        return Classifier(task, self.framework.uses_cudnn())

    def loss(self, task, output, y):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=output))

    def optimiser(self, net, task):
        return Adam(task, self.trained(net))

    def layout(self, name, array):
        return array if array.ndim == 1 or name == "embedding.weight" else array.T  # (in, out)

    def uses_xla(self):
        return self.XLA and not self.framework.uses_cudnn()  # which it cannot compile
