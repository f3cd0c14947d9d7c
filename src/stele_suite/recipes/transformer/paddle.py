"""Transformer in Paddle 3: eager training, Paddle Inference with oneDNN."""

import paddle
from paddle import nn
from paddle.nn.functional import cross_entropy, dropout, relu

from stele_suite.tasks.transformer import positions
from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.paddle.attention import CrossAttention, PostNormLayer
from stele_worker.frameworks.paddle.recipe import PaddleRecipe, adam


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

    def forward(self, source, prefix):
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory)
        x = self.embed(prefix)
        for layer in self.decoder:
            x = layer(x, memory)
        return x

    def logits(self, x):
        return paddle.matmul(x, self.embedding.weight, transpose_y=True)  # (..., vocabulary)


class Recipe(PaddleRecipe):
    def network(self, task):
        return Transformer(task)

    def forward(self, net, task, source, prefix):
        return net.logits(net(source, prefix))

    def predict(self, net, task, source, prefix):
        return net.logits(net(source, prefix)[:, -1])

    def layers(self, task):
        return ["{}.{}".format(part, number) for part in ("encoder", "decoder") for number in range(task.layers)]

    def loss(self, task, output, y):
        even = paddle.logsumexp(output, -1).mean() - output.mean()  # cross_entropy would make one-hot labels
        right = cross_entropy(output.flatten(0, 1), y.flatten())
        return (1 - task.smoothing) * right + task.smoothing * even

    def optimiser(self, net, task):
        return adam(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # dense: (in, out)
