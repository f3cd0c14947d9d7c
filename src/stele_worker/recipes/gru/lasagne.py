"""GRU on IMDB in Lasagne: one Theano function a step, scan over time, updates of shared variables."""

import lasagne
import numpy
import theano
from lasagne.layers import DenseLayer, EmbeddingLayer, Gate, GRULayer, InputLayer, SliceLayer
from lasagne.nonlinearities import identity, sigmoid, softmax, tanh
from theano import tensor as T

from stele_worker.frameworks.lasagne import function

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
        unroll_scan=False,  # 150 steps unrolled exceed Python's recursion limit
        precompute_input=True,  # one product for all steps
        name="gru",
    )
    net = SliceLayer(net, -1, axis=1)  # (batch, 100)
    return DenseLayer(net, 2, nonlinearity=identity, name="dense")  # (batch, 2)


# in the order of the Task; in Lasagne z weighs the new state and 1 - z the old one, so its gate is negated
GATES = (("resetgate", 1), ("updategate", -1), ("hidden_update", 1))
GRU = {"gru.input_weight": "W_in_to_", "gru.hidden_weight": "W_hid_to_", "gru.input_bias": "b_"}
OTHERS = {"embedding.weight": "embedding.W", "dense.weight": "dense.W", "dense.bias": "dense.b"}


def load(net, weights):
    values = {
        theirs: weights[ours].T if "dense" in ours else weights[ours] for ours, theirs in OTHERS.items()
    }
    for ours, prefix in GRU.items():
        for (gate, sign), part in zip(GATES, numpy.split(weights[ours], 3)):
            values["gru." + prefix + gate] = sign * part.T
    for parameter in lasagne.layers.get_all_params(net, trainable=True):
        parameter.set_value(values[parameter.name])
    return net


def named(values):
    """Parameters or gradients that go by Lasagne's names under the Task's, a gate beside the other."""
    found = {ours: values[theirs] for ours, theirs in OTHERS.items()}
    for ours, prefix in GRU.items():
        parts = [sign * values["gru." + prefix + gate] for gate, sign in GATES]
        found[ours] = numpy.concatenate(parts, axis=-1)
    return found


def cross_entropy(net, x, y):
    logits = lasagne.layers.get_output(net, x, deterministic=False)
    return lasagne.objectives.categorical_crossentropy(softmax(logits), y).mean()


def gradients(net, task):
    x, y = T.imatrix(), T.ivector()
    parameters = lasagne.layers.get_all_params(net, trainable=True)
    loss = cross_entropy(net, x, y)
    differentiate = function([x, y], [loss] + T.grad(loss, parameters))

    def run(x, y):
        loss, *grads = differentiate(x, y)
        return loss, named({parameter.name: slope for parameter, slope in zip(parameters, grads)})

    return run


def training_step(net, task):
    x, y = T.imatrix(), T.ivector()
    parameters = lasagne.layers.get_all_params(net, trainable=True)
    loss = cross_entropy(net, x, y)
    # Lasagne adds epsilon to the root of the second moment before it corrects that moment, where the Task
    # adds it after: the correction has to be in epsilon too
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
    return function([x, y], loss, updates)


def inference_step(net, task):
    x = T.imatrix()
    return function([x], lasagne.layers.get_output(net, x, deterministic=True))


def stored(net):
    parameters = lasagne.layers.get_all_params(net, trainable=True)
    return named({parameter.name: parameter.get_value() for parameter in parameters})


def neutral(name, array):
    return array if name == "embedding.weight" else array.T
