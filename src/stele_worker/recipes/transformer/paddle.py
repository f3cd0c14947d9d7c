"""Transformer in Paddle 3: eager training, Paddle Inference with oneDNN."""

import paddle
from paddle import nn
from paddle.nn.functional import cross_entropy, dropout, relu

from stele_worker.attention.paddle import CrossAttention, PostNormLayer, adam_step, load, neutral, stored
from stele_worker.frameworks.paddle import outputs
from stele_worker.tasks.transformer import positions

__all__ = ["LAYOUT", "load", "neutral", "stored"]

LAYOUT = None


class DecoderLayer(PostNormLayer):
    def __init__(self, task, activation):
        super().__init__(task, activation)
        self.cross = CrossAttention(task)

    def forward(self, x, memory):
        x = self.norm1(x + self.drop(self.attention(x, causal=True)))
        x = self.cross.norm(x + self.drop(self.cross(x, memory)))
        return self.norm2(x + self.drop(self.feed_forward(x)))


class Transformer(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.rate, self.scale = task.dropout[0], task.hidden**0.5
        self.embedding = nn.Embedding(task.vocabulary, task.hidden, padding_idx=None, sparse=False)
        self.register_buffer("positions", paddle.to_tensor(positions(task)), persistable=False)
        self.encoder = nn.LayerList([PostNormLayer(task, relu) for _ in range(task.layers)])
        self.decoder = nn.LayerList([DecoderLayer(task, relu) for _ in range(task.layers)])

    def embed(self, tokens):
        x = self.scale * self.embedding(tokens) + self.positions  # (batch, length, hidden)
        return dropout(x, self.rate, training=self.training)

    def hidden(self, source, prefix):
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory)
        x = self.embed(prefix)
        for layer in self.decoder:
            x = layer(x, memory)
        return x

    def project(self, x):
        return paddle.matmul(x, self.embedding.weight, transpose_y=True)  # (..., vocabulary)

    def forward(self, source, prefix):  # the next token, because Paddle saves forward for inference
        return self.project(self.hidden(source, prefix)[:, -1])

    def logits(self, source, prefix):
        return self.project(self.hidden(source, prefix))


def network(task):
    return Transformer(task)


def loss(net, task):
    def compute(source, prefix, y):
        logits = net.logits(source, prefix)
        even = paddle.logsumexp(logits, -1).mean() - logits.mean()  # cross_entropy would make one-hot labels
        right = cross_entropy(logits.flatten(0, 1), y.flatten())
        return (1 - task.smoothing) * right + task.smoothing * even

    return compute


def training_step(net, task):
    return adam_step(net, task, loss(net, task))


def activations(net, task):
    return outputs(
        net,
        ["{}.{}".format(part, number) for part in ("encoder", "decoder") for number in range(task.layers)],
    )
