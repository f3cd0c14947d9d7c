"""Layers with attention in PyTorch: fused attention, and one product for query, key and value."""

from torch import nn
from torch.nn.functional import dropout, scaled_dot_product_attention


def norm(task):
    return nn.LayerNorm(task.hidden, eps=task.norm_epsilon)


class SelfAttention(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.heads = task.heads
        self.qkv = nn.Linear(task.hidden, 3 * task.hidden)
        self.out = nn.Linear(task.hidden, task.hidden)

    def forward(self, x, mask=None, causal=False, cache=None, place=0):
        """Attend to all positions of x; with a ``cache`` of keys and values, to those up to ``place``."""
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # (batch, heads, length, size)
        if cache is not None:
            cache[0, :, :, place : place + 1], cache[1, :, :, place : place + 1] = k, v
            k, v = cache[:, :, :, : place + 1]
        x = scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.out(x.transpose(1, 2).flatten(2))


class CrossAttention(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.heads = task.heads
        self.query = nn.Linear(task.hidden, task.hidden)
        self.kv = nn.Linear(task.hidden, 2 * task.hidden)
        self.out = nn.Linear(task.hidden, task.hidden)
        self.norm = norm(task)  # after the residual sum

    def forward(self, x, memory):
        q = self.query(x).unflatten(2, (self.heads, -1)).transpose(1, 2)  # (batch, heads, length, size)
        k, v = self.kv(memory).unflatten(2, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
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
        return dropout(x, self.rate, self.training)

    def feed_forward(self, x):
        return self.dense2(self.activation(self.dense1(x)))


class PostNormLayer(Layer):
    def forward(self, x, **options):
        x = self.norm1(x + self.drop(self.attention(x, **options)))
        return self.norm2(x + self.drop(self.feed_forward(x)))


class PreNormLayer(Layer):
    def forward(self, x, **options):
        x = x + self.drop(self.attention(self.norm1(x), **options))
        return x + self.drop(self.feed_forward(self.norm2(x)))
