"""The decoder of Keras 3, token by token: one loop, which writes keys and values to a tensor of the full length."""

import keras
from keras import ops

from stele_suite.recipes.decoder import keras as decoder
from stele_worker.frameworks.keras.attention import attend, split
from stele_worker.frameworks.keras.recipe import make_model_step


class Generator(keras.Model):
    def __init__(self, net, task):
        super().__init__()
        self.net, self.task, self.built = net, task, True  # the layers of the decoder are built

    def apply(self, name, x):
        return self.net.get_layer(name)(x)

    def call(self, tokens, training=False):
        task, batch, length = self.task, tokens.shape[0], tokens.shape[1]
        shape = (task.layers, 2, batch, length, task.heads, task.hidden // task.heads)

        def one(place, x, caches):
            x = self.apply("tokens", ops.take(tokens, [place], axis=1))  # (batch, 1, hidden)
            x = self.net.get_layer("positions")(x, place)
            for number in range(task.layers):
                x, caches = self.layer(number, x, place, caches)
            return place + 1, x, caches

        dtype = self.net.get_layer("tokens").compute_dtype
        start = 0, ops.zeros((batch, 1, task.hidden), dtype), ops.zeros(shape, dtype)
        _, x, _ = ops.while_loop(lambda place, *_: place < length, one, start, maximum_iterations=length)
        return self.net.get_layer("tokens")(self.apply("norm", x)[:, -1], reverse=True)

    def layer(self, number, x, place, caches):
        name, task = "layer_{}_".format(number), self.task
        q, k, v = split(self.apply(name + "attention_qkv", self.apply(name + "norm1", x)), 3, task)
        caches = ops.slice_update(caches, (number, 0, 0, place, 0, 0), ops.stack([k, v])[None])
        mask = (ops.arange(caches.shape[3]) <= place)[None, None, None]  # (batch, heads, queries, keys)
        y = attend(q, caches[number, 0], caches[number, 1], task, mask)
        x = x + self.apply(name + "attention_out", y)
        y = self.apply(name + "dense1", self.apply(name + "norm2", x))
        return x + self.apply(name + "dense2", y), caches


class Recipe(decoder.Recipe):
    def layers(self, task):
        return ()  # each layer is called for each token

    def inference_step(self, net, task):
        return make_model_step(net, Generator(net, task), self.XLA)
