"""The decoder of Paddle 3, token by token, eager: keys and values are written into tensors of the full length."""

import paddle
from paddle.nn.functional import scaled_dot_product_attention

from stele_suite.recipes.decoder import paddle as decoder
from stele_worker.frameworks.paddle.recipe import compiled


def attend(attention, x, keys, values, place):
    """Return self-attention of one position to those up to ``place``. Its key and value are written there."""
    q, k, v = attention.split(x)  # (batch, 1, heads, size) each
    keys[:, place : place + 1], values[:, place : place + 1] = k, v
    return attention.merge(scaled_dot_product_attention(q, keys[:, : place + 1], values[:, : place + 1]))


class Recipe(decoder.Recipe):
    def layers(self, task):
        return ()  # each layer is called for each token

    def inference_step(self, net, task):
        net.eval()

        def compute(token, place, caches):
            x = net.tokens(token) + net.positions.weight[place]  # (batch, 1, hidden)
            for layer, (keys, values) in zip(net.layer, caches):
                x = x + attend(layer.attention, layer.norm1(x), keys, values, place)
                x = x + layer.feed_forward(layer.norm2(x))
            return x

        forward = compiled(compute)

        def step(tokens):
            batch, length = tokens.shape
            shape = (batch, length, task.heads, task.hidden // task.heads)
            caches = [(paddle.zeros(shape), paddle.zeros(shape)) for _ in range(task.layers)]
            for place in range(length):
                x = forward(tokens[:, place : place + 1], place, caches)
            return net.logits(net.norm(x)[:, -1])  # (batch, vocabulary)

        return paddle.no_grad()(step)
