"""GRU on IMDB in Keras 3: Sequential; Keras' documented loop, compiled where that is faster."""

import keras
import numpy
from keras import layers, ops

from stele_worker.frameworks.keras.recipe import KerasRecipe, adam, set_policy

# in the order of the network's variables; Keras has the two biases as one array (2, 300)
PARAMETERS = ("embedding.weight", "gru.input_weight", "gru.hidden_weight", "biases", "dense.weight", "dense.bias")
BIASES = ("gru.input_bias", "gru.hidden_bias")


class Recipe(KerasRecipe):
    def network(self, task):
        set_policy(task)
        recurrent = layers.GRU(
            task.hidden,
            reset_after=True,
            unroll=False,  # 150 unrolled steps compile for seconds and are not faster
            use_cudnn=self.framework.use_cudnn(),
            name="gru",
        )
        return keras.Sequential(
            [
                keras.Input((task.length,), dtype="int32"),
                layers.Embedding(task.vocabulary, task.embedding, name="embedding"),  # (batch, 150, 125)
                recurrent,  # (batch, 100), of the last step
                layers.Dense(2, dtype="float32", name="dense"),  # (batch, 2)
            ]
        )

    def layers(self, task):
        return ("embedding", "gru", "dense")

    def loss(self, task, output, y):
        return ops.mean(keras.losses.sparse_categorical_crossentropy(y, output, from_logits=True))

    def optimiser(self, net, task):
        return adam(task)

    def layout(self, name, array):
        if name.startswith("gru."):
            r, z, n = numpy.split(array, 3)
            array = numpy.concatenate([z, r, n])
        return array if name == "embedding.weight" else array.T  # (in, out)

    def assign(self, net, arrays):
        biases = numpy.stack([arrays[name] for name in BIASES])
        net.set_weights([biases if name == "biases" else arrays[name] for name in PARAMETERS])
        return net

    def named(self, variables, values):
        arrays = dict(zip(PARAMETERS, values))
        biases = arrays.pop("biases")  # ``neutral`` divides them
        return {**arrays, **dict.fromkeys(BIASES, biases)}

    def neutral(self, name, array):
        if name in BIASES and array.ndim == 2:
            array = array[BIASES.index(name)]
        return super().neutral(name, array)
