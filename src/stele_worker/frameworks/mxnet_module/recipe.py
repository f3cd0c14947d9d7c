"""What the recipes of MXNet's Module have in common: steps, gradients and optimisers."""

import mxnet as mx

from stele_worker import frameworks
from stele_worker.frameworks.recipe import Recipe

framework = frameworks.load("mxnet_module")


class Network:
    """Symbols: ``logits``, which training computes, and ``output`` of inference; and the arrays of their variables."""

    def __init__(self, logits, output=None):
        self.logits, self.output = logits, logits if output is None else output
        self.initial = {}, {}
        self.module = None  # the Module that trains the network

    def arrays(self):
        """Return (parameters, running statistics), each by name."""
        return self.initial if self.module is None else self.module.get_params()


class ModuleRecipe(Recipe):
    """The variables of the symbols have the Task's names."""

    def named(self, arrays):
        """Return parameters or gradients by the Task's names."""
        return arrays

    def assign(self, net, arrays):
        parameters, statistics = net.initial
        for name, array in arrays.items():
            group = statistics if ".running_" in name else parameters
            group[name] = framework.put(array)
        return net

    def stored(self, net):
        parameters, statistics = net.arrays()
        return self.named(dict(parameters, **statistics))

    def loss(self, task, output, y):
        """Return the mean cross-entropy of probabilities, which the symbol of training does not compute."""
        return -mx.nd.log(mx.nd.pick(output, y, axis=1)).mean()

    def before_update(self, task, optimiser):
        """Change what the optimiser has to do in this step."""

    def training_step(self, net, task):
        optimiser = self.optimiser(net, task)
        module = mx.mod.Module(with_softmax_output(net.logits), ["x"], ["y"], context=framework.device)

        def bind(x, y):
            """Bind the module to the shapes of a batch."""
            parameters, statistics = net.arrays()
            module.bind([("x", x.shape)], [("y", y.shape)], for_training=True, grad_req="write")
            module.init_params(initializer=None, arg_params=parameters, aux_params=statistics)
            optimiser.rescale_grad = 1 / len(x)
            module.init_optimizer(kvstore=None, optimizer=optimiser)
            net.module = module

        def step(x, y):
            if not module.binded:
                bind(x, y)
            module.forward_backward(mx.io.DataBatch([x], [y]))
            self.before_update(task, optimiser)
            module.update()
            return self.loss(task, module.get_outputs()[0], y)

        return step

    def gradients(self, net, task):
        symbol = with_softmax_output(net.logits)

        def run(x, y):
            parameters, statistics = net.arrays()
            requests = dict.fromkeys(parameters, "write")
            executor = symbol.simple_bind(framework.device, grad_req=requests, x=x.shape, y=y.shape)
            executor.copy_params_from(parameters, statistics)
            (probabilities,) = executor.forward(is_train=True, x=x, y=y)
            executor.backward()
            grads = {name: executor.grad_dict[name] / len(x) for name in parameters}
            return self.loss(task, probabilities, y), self.named(grads)

        return run

    def inference_step(self, net, task):
        """Return step(x) -> what inference returns, in an array that the next step overwrites."""
        module = mx.mod.Module(net.output, ["x"], None, context=framework.device)

        def step(x):
            if not module.binded:
                parameters, statistics = net.arrays()
                module.bind([("x", x.shape)], for_training=False)
                module.set_params(parameters, statistics, allow_extra=True)
            module.forward(mx.io.DataBatch([x]), is_train=False)
            return module.get_outputs()[0]

        return step


def relu(x):
    """Return max(x, 0) in oneDNN's own layout of x. The symbol relu first copies x to a plain layout."""
    return mx.sym.Activation(x, act_type="relu")


def with_softmax_output(logits):
    """Return the symbol of training: it outputs probabilities, and its gradients are of the summed cross-entropy."""
    return mx.sym.SoftmaxOutput(logits, label=mx.sym.var("y"), normalization="null", grad_scale=1.0)


def sgd(task):
    """Return SGD. MXNet has the learning rate inside the velocity, which is equivalent at a constant rate."""
    return mx.optimizer.SGD(learning_rate=task.learning_rate, momentum=task.momentum, wd=0.0)
