"""Layers with attention in TensorFlow, which has no fused attention: two products and a softmax."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow.recipe import Linear, dropout


class Norm(tf.Module):
    """Normalise in float32."""

    def __init__(self, task):
        super().__init__()
        self.epsilon = task.norm_epsilon
        self.weight = tf.Variable(tf.ones(task.hidden))
        self.bias = tf.Variable(tf.zeros(task.hidden))

    def __call__(self, x):
        dtype, x = x.dtype, tf.cast(x, tf.float32)
        mean, variance = tf.nn.moments(x, -1, keepdims=True)
        return tf.cast(tf.nn.batch_normalization(x, mean, variance, self.bias, self.weight, self.epsilon), dtype)


def attend(q, k, v, mask=None):
    """Return scaled dot-product attention of arrays (batch, heads, length, size), as (batch, length, hidden)."""
    scores = tf.linalg.matmul(q, k, transpose_b=True) * q.shape[-1] ** -0.5  # (batch, heads, queries, keys)
    if mask is not None:
        scores = tf.where(mask, scores, scores.dtype.min)
    x = tf.linalg.matmul(tf.nn.softmax(scores), v)
    return tf.reshape(tf.transpose(x, (0, 2, 1, 3)), (-1, q.shape[2], q.shape[1] * q.shape[3]))


def split(x, count, heads):
    """Return (batch, length, count * hidden) as ``count`` arrays (batch, heads, length, size)."""
    x = tf.reshape(x, (-1, x.shape[1], count, heads, x.shape[2] // (count * heads)))
    return tf.unstack(tf.transpose(x, (2, 0, 3, 1, 4)), num=count)


class SelfAttention(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.heads = task.heads
        self.qkv = Linear(task.hidden, 3 * task.hidden)
        self.out = Linear(task.hidden, task.hidden)

    def __call__(self, x, mask=None):
        q, k, v = split(self.qkv(x), 3, self.heads)
        return self.out(attend(q, k, v, mask))


class CrossAttention(tf.Module):
    def __init__(self, task):
        super().__init__()
        self.heads = task.heads
        self.query = Linear(task.hidden, task.hidden)
        self.kv = Linear(task.hidden, 2 * task.hidden)
        self.out = Linear(task.hidden, task.hidden)
        self.norm = Norm(task)  # after the residual sum

    def __call__(self, x, memory):
        (q,) = split(self.query(x), 1, self.heads)
        k, v = split(self.kv(memory), 2, self.heads)
        return self.out(attend(q, k, v))


def causal(length):
    """Return the mask (length, length) of positions that attend to themselves and those before."""
    return tf.linalg.band_part(tf.ones((length, length), tf.bool), -1, 0)


class Layer(tf.Module):
    """Self-attention and two dense layers. Its subclasses place the normalisation."""

    def __init__(self, task, activation):
        super().__init__()
        self.rate, self.activation = task.dropout[0], activation
        self.attention = SelfAttention(task)
        self.norm1 = Norm(task)
        self.dense1 = Linear(task.hidden, task.inner)
        self.dense2 = Linear(task.inner, task.hidden)
        self.norm2 = Norm(task)

    def feed_forward(self, x):
        return self.dense2(self.activation(self.dense1(x)))


class PostNormLayer(Layer):
    def __call__(self, x, training, mask=None):
        x = self.norm1(x + dropout(self.attention(x, mask), self.rate, training))
        return self.norm2(x + dropout(self.feed_forward(x), self.rate, training))


def cross_entropy(logits, labels, smoothing=0.0):
    """Return the mean over all labels of logits (..., classes)."""
    value = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    if smoothing:
        even = tf.reduce_logsumexp(logits, -1) - tf.reduce_mean(logits, -1)
        value = (1 - smoothing) * value + smoothing * even
    return tf.reduce_mean(value)
