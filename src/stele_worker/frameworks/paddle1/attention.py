"""Layers with attention in Paddle 1, which has no fused attention: two products and a softmax."""

import paddle.fluid as fluid
from paddle.fluid.dygraph import LayerNorm, Linear
from paddle.fluid.layers import matmul, reshape, softmax, transpose, unstack

from stele_worker.frameworks.paddle1.recipe import drop


def norm(task):
    return LayerNorm([task.hidden], epsilon=task.norm_epsilon)


def split(x, count, heads):
    """Return (batch, length, count * hidden) as ``count`` tensors (batch, heads, length, size)."""
    x = reshape(x, [0, 0, count, heads, x.shape[2] // count // heads])
    return unstack(transpose(x, [2, 0, 3, 1, 4]), axis=0)


def attend(q, k, v, bias=None):
    """Return scaled dot-product attention as (batch, length, hidden); ``bias`` is added to the scores."""
    scores = matmul(q, k, transpose_y=True, alpha=q.shape[3] ** -0.5)  # (batch, heads, queries, keys)
    if bias is not None:
        scores = scores + bias
    x = transpose(matmul(softmax(scores), v), [0, 2, 1, 3])
    return reshape(x, [0, 0, q.shape[1] * q.shape[3]])


class SelfAttention(fluid.dygraph.Layer):
    def __init__(self, task):
        super().__init__()
        self.heads = task.heads
        self.qkv = Linear(task.hidden, 3 * task.hidden)
        self.out = Linear(task.hidden, task.hidden)

    def forward(self, x, bias=None):
        return self.out(attend(*split(self.qkv(x), 3, self.heads), bias=bias))


class CrossAttention(fluid.dygraph.Layer):
    def __init__(self, task):
        super().__init__()
        self.heads = task.heads
        self.query = Linear(task.hidden, task.hidden)
        self.kv = Linear(task.hidden, 2 * task.hidden)
        self.out = Linear(task.hidden, task.hidden)
        self.norm = norm(task)  # after the residual sum

    def forward(self, x, memory):
        return self.out(attend(*split(self.query(x), 1, self.heads), *split(self.kv(memory), 2, self.heads)))


class PostNormLayer(fluid.dygraph.Layer):
    """Self-attention and two dense layers, each followed by a normalised residual sum."""

    def __init__(self, task, activation):
        super().__init__()
        self.rate, self.activation = task.dropout[0], activation
        self.attention = SelfAttention(task)
        self.norm1 = norm(task)
        self.dense1 = Linear(task.hidden, task.inner)
        self.dense2 = Linear(task.inner, task.hidden)
        self.norm2 = norm(task)

    def drop(self, x):
        return drop(x, self.rate, self.training)

    def feed_forward(self, x):
        return self.dense2(self.activation(self.dense1(x)))

    def forward(self, x, bias=None):
        x = self.norm1(x + self.drop(self.attention(x, bias)))
        return self.norm2(x + self.drop(self.feed_forward(x)))
