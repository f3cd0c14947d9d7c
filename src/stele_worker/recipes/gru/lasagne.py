"""GRU on IMDB in Lasagne: one Theano function per step, scan over time, updates of shared variables."""

import lasagne
import numpy
import theano
from lasagne.layers import DenseLayer, EmbeddingLayer, Gate, GRULayer, InputLayer, SliceLayer
from lasagne.nonlinearities import identity, sigmoid, softmax, tanh
from theano import tensor as T

from stele_worker.frameworks.lasagne import make_function

LAYOUT = None


def network(task):
    net = InputLayer((None, task.length))
    net = EmbeddingLayer(net, task.vocabulary, task.embedding, name="embedding")  # (batch, 150, 125)
    net = GRULayer(  # (batch, 150, 100)
        net,
        task.hidden,
        resetgate=Gate(W_cell=None, nonlinearity=sigmoid),
        updategate=Gate(W_cell=None, nonlinearity=sigmoid),
        hidden_update=Gate(W_cell=None, nonlinearity=tanh),
        hid_init=lasagne.init.Constant(0.0),
        learn_init=False,
        unroll_scan=False,  # 150 unrolled steps exceed Python's recursion limit
        precompute_input=True,  # one product for all steps
        name="gru",
    )
    net = SliceLayer(net, -1, axis=1)  # (batch, 100)
    return DenseLayer(net, 2, nonlinearity=identity, name="dense")  # (batch, 2)


# in the Task's order; Lasagne multiplies the new state by z and the old by 1 - z, so its gate is negated
GATES = (("resetgate", 1), ("updategate", -1), ("hidden_update", 1))
GRU = {"gru.input_weight": "W_in_to_", "gru.hidden_weight": "W_hid_to_", "gru.input_bias": "b_"}
OTHERS = {"embedding.weight": "embedding.W", "dense.weight": "dense.W", "dense.bias": "dense.b"}


def load(net, weights):
    values = {
        lasagne_name: weights[name].T if "dense" in name else weights[name]
        for name, lasagne_name in OTHERS.items()
    }
    for name, prefix in GRU.items():
        for (gate, sign), part in zip(GATES, numpy.split(weights[name], 3)):
            values["gru." + prefix + gate] = sign * part.T
    for parameter in lasagne.layers.get_all_params(net, trainable=True):
        parameter.set_value(values[parameter.name])
    return net


def to_task_names(values):
    """Return parameters or gradients with Lasagne's names under the Task's names, with stacked gates."""
    arrays = {name: values[lasagne_name] for name, lasagne_name in OTHERS.items()}
    for name, prefix in GRU.items():
        parts = [sign * values["gru." + prefix + gate] for gate, sign in GATES]
        arrays[name] = numpy.concatenate(parts, axis=-1)
    return arrays


def cross_entropy(net, x, y):
    logits = lasagne.layers.get_output(net, x, deterministic=False)
    return lasagne.objectives.categorical_crossentropy(softmax(logits), y).mean()


def gradients(net, task):
    x, y = T.imatrix(), T.ivector()
    parameters = lasagne.layers.get_all_params(net, trainable=True)
    loss = cross_entropy(net, x, y)
    differentiate = make_function([x, y], [loss] + T.grad(loss, parameters))

    def run(x, y):
        loss, *grads = differentiate(x, y)
        return loss, to_task_names({parameter.name: grad for parameter, grad in zip(parameters, grads)})

    return run


def training_step(net, task):
    x, y = T.imatrix(), T.ivector()
    parameters = lasagne.layers.get_all_params(net, trainable=True)
    loss = cross_entropy(net, x, y)
    # Lasagne adds epsilon before it corrects the second moment, the Task adds it after: so correct
    # epsilon by the same factor
    count = theano.shared(numpy.float32(0))
    epsilon = task.epsilon * T.sqrt(1 - task.beta2 ** (count + 1))
    updates = lasagne.updates.adam(
        loss,
        parameters,
        learning_rate=task.learning_rate,
        beta1=task.beta1,
        beta2=task.beta2,
        epsilon=epsilon,
    )
    updates[count] = count + 1
    return make_function([x, y], loss, updates)


def inference_step(net, task):
    x = T.imatrix()
    return make_function([x], lasagne.layers.get_output(net, x, deterministic=True))


def stored(net):
    parameters = lasagne.layers.get_all_params(net, trainable=True)
    return to_task_names({parameter.name: parameter.get_value() for parameter in parameters})


def neutral(name, array):
    return array if name == "embedding.weight" else array.T
