"""GRU on IMDB in Keras 2: Sequential, train_on_batch and predict_on_batch; its GRU loops in the backend's way."""

import keras
import numpy
from keras import backend as K
from keras import layers

from stele_worker.frameworks.keras2 import cross_entropy, outputs

LAYOUT = None


def network(task):
    recurrent = layers.GRU(
        task.hidden,
        activation="tanh",
        recurrent_activation="sigmoid",
        use_bias=True,
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
    dense = layers.Dense(2, activation=None, use_bias=True, kernel_initializer="zeros", name="dense")
    return keras.Sequential(
        [
            embedding,  # (batch, 150, 125)
            recurrent,  # (batch, 100), of the last step
            dense,  # (batch, 2)
        ]
    )


def reorder_gates(array):
    """Reorder the three gates along the last axis: r, z, n to Keras' z, r, h, or back."""
    first, second, last = numpy.split(array, 3, axis=-1)
    return numpy.concatenate([second, first, last], axis=-1)


def load(net, weights):
    kernels = [reorder_gates(weights["gru." + name + "_weight"].T) for name in ("input", "hidden")]
    biases = numpy.stack([weights["gru.input_bias"], weights["gru.hidden_bias"]])  # (2, 300)
    net.get_layer("embedding").set_weights([weights["embedding.weight"]])
    net.get_layer("gru").set_weights(kernels + [reorder_gates(biases)])
    net.get_layer("dense").set_weights([weights["dense.weight"].T, weights["dense.bias"]])
    return net


def named(net, values):
    embedding, input_weight, hidden_weight, biases, weight, bias = values
    return {
        "embedding.weight": embedding,
        "gru.input_weight": input_weight,
        "gru.hidden_weight": hidden_weight,
        "gru.input_bias": biases[0],
        "gru.hidden_bias": biases[1],
        "dense.weight": weight,
        "dense.bias": bias,
    }


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


def predictor(net):
    return net


def training_step(net, task):
    optimiser = Adam(
        task.learning_rate,
        beta_1=task.beta1,
        beta_2=task.beta2,
        epsilon=task.epsilon,
        amsgrad=False,
        decay=0.0,
    )
    net.compile(optimiser, cross_entropy)
    return net.train_on_batch


def stored(net):
    return named(net, net.get_weights())


def neutral(name, array):
    if name == "embedding.weight":
        return array
    return reorder_gates(array).T if name.startswith("gru.") else array.T


def activations(net, task):
    names = {name: name for name in ("embedding", "gru", "dense")}
    return outputs(net, names, lambda net, tensors: keras.Model(net.input, tensors))
