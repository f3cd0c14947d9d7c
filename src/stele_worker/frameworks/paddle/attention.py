"""Layers with attention in Paddle 3: its attention, and one product for query, key and value."""

from paddle import nn
from paddle.nn.functional import dropout, scaled_dot_product_attention


def norm(task):
    return nn.LayerNorm(task.hidden, epsilon=task.norm_epsilon)


class SelfAttention(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.shape = [0, -1, 3, task.heads, task.hidden // task.heads]  # 0: the batch
        self.hidden = task.hidden
        self.qkv = nn.Linear(task.hidden, 3 * task.hidden)
        self.out = nn.Linear(task.hidden, task.hidden)

    def forward(self, x, mask=None, causal=False):
        q, k, v = self.split(x)
        return self.merge(scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal))

    def split(self, x):
        return self.qkv(x).reshape(self.shape).unbind(2)  # (batch, length, heads, size) each

    def merge(self, x):
        return self.out(x.reshape([0, -1, self.hidden]))


class CrossAttention(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.heads, self.size = task.heads, task.hidden // task.heads
        self.query = nn.Linear(task.hidden, task.hidden)
        self.kv = nn.Linear(task.hidden, 2 * task.hidden)
        self.out = nn.Linear(task.hidden, task.hidden)
        self.norm = norm(task)  # after the residual sum

    def forward(self, x, memory):
        q = self.query(x).reshape([0, -1, self.heads, self.size])  # (batch, length, heads, size)
        k, v = self.kv(memory).reshape([0, -1, 2, self.heads, self.size]).unbind(2)
        x = scaled_dot_product_attention(q, k, v)
        return self.out(x.reshape([0, -1, self.heads * self.size]))


class Layer(nn.Layer):
    """Self-attention and two dense layers. Its subclasses place the normalisation."""

    def __init__(self, task, activation):
        super().__init__()
        self.rate, self.activation = task.dropout[0], activation
        self.attention = SelfAttention(task)
        self.norm1 = norm(task)
        self.dense1 = nn.Linear(task.hidden, task.inner)
        self.dense2 = nn.Linear(task.inner, task.hidden)
        self.norm2 = norm(task)

    def drop(self, x):
        return dropout(x, self.rate, training=self.training)

    def feed_forward(self, x):
        return self.dense2(self.activation(self.dense1(x)))


class PostNormLayer(Layer):
    def forward(self, x, mask=None):
        x = self.norm1(x + self.drop(self.attention(x, mask)))
        return self.norm2(x + self.drop(self.feed_forward(x)))


class PreNormLayer(Layer):
    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x), causal=True))
        return x + self.drop(self.feed_forward(self.norm2(x)))
