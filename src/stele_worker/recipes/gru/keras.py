"""GRU on IMDB in Keras 3: Sequential; Keras' documented loop, compiled where that is faster."""

import keras
import numpy
from keras import layers

from stele_worker.frameworks.keras import (
    adam,
    cross_entropy,
    make_training_step,
    outputs,
    parameters,
    set_policy,
    use_cudnn,
)

LAYOUT = None
BIASES = ("gru.input_bias", "gru.hidden_bias")  # of Keras' one array (2, 300)


def network(task):
    set_policy(task)
    recurrent = layers.GRU(
        task.hidden,
        activation="tanh",
        recurrent_activation="sigmoid",
        use_bias=True,
        reset_after=True,
        unroll=False,  # 150 unrolled steps compile for seconds and are not faster
        use_cudnn=use_cudnn(),
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


def named(variables, values):
    embedding, input_weight, hidden_weight, biases, weight, bias = values  # neutral divides the biases
    return {
        "embedding.weight": embedding,
        "gru.input_weight": input_weight,
        "gru.hidden_weight": hidden_weight,
        "gru.input_bias": biases,
        "gru.hidden_bias": biases,
        "dense.weight": weight,
        "dense.bias": bias,
    }


def output(net):
    return net.outputs[0]  # of the inference


def training_step(net, task):
    return make_training_step(net, adam(task), cross_entropy())


def stored(net):
    return named(net.weights, parameters(net))


def neutral(name, array):
    if name == "embedding.weight":
        return array
    if name in BIASES:
        array = array[BIASES.index(name)]
    return reorder_gates(array).T if name.startswith("gru.") else array.T


def activations(net, task):
    return outputs(net, {name: name for name in ("embedding", "gru", "dense")})
