"""GRU on IMDB in NumPy: the oracle, its gradients by hand, in float64 whatever the Task's dtype."""

import numpy

from stele_worker.oracle import adam, dense, embedding, filled, parameters, softmax_cross_entropy

LAYOUT = None


def network(task):
    shapes = {
        "embedding.weight": (task.vocabulary, task.embedding),
        "gru.input_weight": (3 * task.hidden, task.embedding),
        "gru.hidden_weight": (3 * task.hidden, task.hidden),
        "gru.input_bias": (3 * task.hidden,),
        "gru.hidden_bias": (3 * task.hidden,),
        "dense.weight": (2, task.hidden),
        "dense.bias": (2,),
    }
    if task.form == "one-bias":
        del shapes["gru.hidden_bias"]
    return parameters(shapes)


def load(net, weights):
    return filled(net, weights)


def sigmoid(x):
    return (1 + numpy.tanh(x / 2)) / 2


def cell(a, h, weight, bias):
    """One step of the GRU on a = W x + b, the gates r, z, n side by side: (batch, 3 * hidden)."""
    c, dense_hidden = dense(h, weight, bias)  # (batch, 3 * hidden)
    (a_r, a_z, a_n), (c_r, c_z, c_n) = numpy.split(a, 3, axis=1), numpy.split(c, 3, axis=1)
    r, z = sigmoid(a_r + c_r), sigmoid(a_z + c_z)
    n = numpy.tanh(a_n + r * c_n)

    def backward(g):
        d_n = g * (1 - z) * (1 - n * n)
        d_z = g * (h - n) * z * (1 - z)
        d_r = d_n * c_n * r * (1 - r)
        d_h, d_weight, d_bias = dense_hidden(numpy.concatenate([d_r, d_z, d_n * r], axis=1))
        return numpy.concatenate([d_r, d_z, d_n], axis=1), g * z + d_h, d_weight, d_bias

    return (1 - z) * n + z * h, backward


def gru(x, input_weight, hidden_weight, input_bias, hidden_bias):
    """The last hidden state."""
    a, dense_input = dense(x, input_weight, input_bias)  # (batch, 150, 300)
    h = numpy.zeros((len(x), hidden_weight.shape[1]))  # (batch, 100)
    cells = []
    for step in range(x.shape[1]):
        h, cell_backward = cell(a[:, step], h, hidden_weight, hidden_bias)
        cells.append(cell_backward)

    def backward(g):
        d_a = numpy.empty_like(a)
        d_weight, d_bias = numpy.zeros_like(hidden_weight), numpy.zeros_like(hidden_bias)
        for step in reversed(range(x.shape[1])):
            d_a[:, step], g, weight_part, bias_part = cells[step](g)
            d_weight += weight_part
            d_bias += bias_part
        d_x, d_input_weight, d_input_bias = dense_input(d_a)
        return d_x, d_input_weight, d_weight, d_input_bias, d_bias

    return h, backward


GRU = ("gru.input_weight", "gru.hidden_weight", "gru.input_bias", "gru.hidden_bias")


def forward(net, task, x, seen=None):
    """(logits, backward); outputs of layers go into ``seen``."""
    seen = {} if seen is None else seen
    x, embed = embedding(x, net["embedding.weight"])  # (batch, 150, 125)
    seen["embedding"] = x
    no_bias = numpy.zeros(3 * task.hidden)
    x, recur = gru(x, *[net.get(name, no_bias) for name in GRU])  # (batch, 100)
    seen["gru"] = x
    x, classify = dense(x, net["dense.weight"], net["dense.bias"])  # (batch, 2)
    seen["dense"] = x

    def backward(g):
        d = {}
        g, d["dense.weight"], d["dense.bias"] = classify(g)
        g, *parts = recur(g)
        d.update(zip(GRU, parts))
        d["embedding.weight"] = embed(g)
        return {name: d[name] for name in net}

    return x, backward


def gradients(net, task):
    def run(x, y):
        logits, backward = forward(net, task, x)
        loss, cross_entropy = softmax_cross_entropy(logits, y)
        return loss, backward(cross_entropy())

    return run


def training_step(net, task):
    run = gradients(net, task)
    update = adam(
        net, learning_rate=task.learning_rate, beta1=task.beta1, beta2=task.beta2, epsilon=task.epsilon
    )

    def step(x, y):
        loss, d = run(x, y)
        update(d)
        return loss

    return step


def inference_step(net, task):
    def step(x):
        logits, _ = forward(net, task, x)
        return logits

    return step


def stored(net):
    return net


def neutral(name, array):
    return array


def activations(net, task):
    def run(x):
        seen = {}
        forward(net, task, x, seen)
        return seen

    return run
