"""GRU on IMDB in Keras 2: Sequential, train_on_batch and predict_on_batch; its GRU loops in the backend's way."""

import keras
import numpy
from keras import backend as K
from keras import layers

from stele_worker.frameworks.keras2.recipe import Keras2Recipe

# in the order of the network's parameters; Keras has the two biases as one array (2, 300)
PARAMETERS = ("embedding.weight", "gru.input_weight", "gru.hidden_weight", "biases", "dense.weight", "dense.bias")
BIASES = ("gru.input_bias", "gru.hidden_bias")


class Adam(keras.optimizers.Adam):
    # Keras adds epsilon before it corrects the second moment, the Task adds it after: so correct
    # epsilon by the same factor

    @property
    def epsilon(self):
        step = K.cast(self.iterations, "float32") + 1
        return self.constant * K.sqrt(1 - K.pow(self.beta_2, step))

    @epsilon.setter
    def epsilon(self, constant):
        self.constant = constant

    def get_updates(self, loss, params):
        # Keras does not define whether the count is read before or after it is incremented; on TensorFlow it is
        # mostly read after, and then the losses are 3 % off
        updates = super().get_updates(loss=loss, params=params)[1:]  # without the increment of the count
        with K.control_dependencies(updates):
            self.updates = updates + [K.update_add(self.iterations, 1)]
        return self.updates


class Recipe(Keras2Recipe):
    def network(self, task):
        recurrent = layers.GRU(
            task.hidden,
            recurrent_activation="sigmoid",
            reset_after=True,
            implementation=2,  # one product for the three gates
            unroll=False,
            kernel_initializer="zeros",  # load replaces it
            recurrent_initializer="zeros",
            name="gru",
        )
        embedding = layers.Embedding(
            task.vocabulary,
            task.embedding,
            embeddings_initializer="zeros",
            input_length=task.length,
            name="embedding",
        )
        return keras.Sequential(
            [
                embedding,  # (batch, 150, 125)
                recurrent,  # (batch, 100), of the last step
                layers.Dense(2, kernel_initializer="zeros", name="dense"),  # (batch, 2)
            ]
        )

    def layers(self, task):
        return ("embedding", "gru", "dense")

    def loss(self, task, output, y):
        return keras.losses.sparse_categorical_crossentropy(y, output, from_logits=True)

    def optimiser(self, net, task):
        return Adam(task.learning_rate, beta_1=task.beta1, beta_2=task.beta2, epsilon=task.epsilon, amsgrad=False)

    def layout(self, name, array):
        if name.startswith("gru."):
            r, z, n = numpy.split(array, 3)
            array = numpy.concatenate([z, r, n])
        return array if name == "embedding.weight" else array.T  # (in, out)

    def names(self, groups):
        return PARAMETERS

    def assign(self, net, arrays):
        return super().assign(net, dict(arrays, biases=numpy.stack([arrays[name] for name in BIASES])))

    def named(self, groups, values):
        arrays = super().named(groups, values)
        arrays.update(zip(BIASES, arrays.pop("biases")))
        return arrays

    def inference_model(self, net, outputs):
        return keras.Model(net.input, outputs)  # no layer differs in training
