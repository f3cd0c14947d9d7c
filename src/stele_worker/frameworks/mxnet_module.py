"""MXNet 1 with its declarative API: symbols, and the Module that computes them.

Everything that does not concern symbols comes from Gluon's module. A network is a dict: its symbols by name,
"arrays" with their initial values, and "module", the Module that trains them, or None before training.
"""

import os

import mxnet as mx

from stele_worker.frameworks import mxnet_gluon as native

configure, versions, take, wait = native.configure, native.versions, native.take, native.wait
fetch, peak_memory, profile = native.fetch, native.peak_memory, native.profile


def flags():
    shared = {name: value for name, value in native.flags().items() if name != "hybridize"}
    return dict(shared, subgraph_backend=os.environ.get("MXNET_SUBGRAPH_BACKEND", "default"))


def put(array):
    return mx.nd.array(array, ctx=native.device, dtype="float32")  # labels must have the dtype of the logits


def relu(x):
    """Return max(x, 0) in oneDNN's own layout of x. The symbol relu first copies x to a plain layout."""
    return mx.sym.Activation(x, act_type="relu")


def with_softmax_output(logits):
    """Return the symbol for training: it outputs probabilities, and its gradients are of the summed cross-entropy."""
    return mx.sym.SoftmaxOutput(logits, label=mx.sym.var("y"), normalization="null", grad_scale=1.0)


def cross_entropy(probabilities, y):
    """Return the mean loss, which the symbol for training does not compute."""
    return -mx.nd.log(mx.nd.pick(probabilities, y, axis=1)).mean()


def arrays(net):
    """Return (parameters, running statistics), each by name."""
    return net["arrays"] if net["module"] is None else net["module"].get_params()


def bind_for_training(net, symbol, optimiser, x, y):
    """Return a Module that trains ``symbol``, bound to the shapes of a batch."""
    module = mx.mod.Module(symbol, ["x"], ["y"], context=native.device)
    module.bind([("x", x.shape)], [("y", y.shape)], for_training=True, grad_req="write")
    module.init_params(initializer=None, arg_params=arrays(net)[0], aux_params=arrays(net)[1])
    module.init_optimizer(kvstore=None, optimizer=optimiser)
    net["module"] = module
    return module


def make_inference_step(net, symbol):
    """Return step(x) -> the output of ``symbol``, in an array that the next step overwrites."""
    module = mx.mod.Module(symbol, ["x"], None, context=native.device)

    def step(x):
        if not module.binded:
            parameters, statistics = arrays(net)
            module.bind([("x", x.shape)], for_training=False)
            module.set_params(parameters, statistics, allow_extra=True)
        module.forward(mx.io.DataBatch([x]), is_train=False)
        return module.get_outputs()[0]

    return step


def make_gradient_function(net, symbol):
    """Return run(x, y) -> (mean loss, {parameter: gradient})."""

    def run(x, y):
        parameters, statistics = arrays(net)
        requests = dict.fromkeys(parameters, "write")
        executor = symbol.simple_bind(native.device, grad_req=requests, x=x.shape, y=y.shape)
        executor.copy_params_from(parameters, statistics)
        (probabilities,) = executor.forward(is_train=True, x=x, y=y)
        executor.backward()
        grads = {name: executor.grad_dict[name] / len(x) for name in parameters}
        return cross_entropy(probabilities, y), grads

    return run


def gradients(recipe, net, task):
    """Return run(x, y) -> (loss, {parameter: gradient})."""
    differentiate = make_gradient_function(net, with_softmax_output(net["logits"]))
    named = getattr(recipe, "named", dict)

    def run(x, y):
        loss, grads = differentiate(x, y)
        return loss, named(grads)

    return run


def inference_step(recipe, net, task):
    """Return step(x) -> logits or features."""
    return make_inference_step(net, net[recipe.OUTPUT])
