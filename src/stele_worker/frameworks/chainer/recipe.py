"""What the recipes of Chainer have in common: steps, gradients and optimisers."""

import itertools
from functools import partial

import chainer
import numpy
from chainer.graph_optimizations.static_graph import static_graph

from stele_worker import frameworks
from stele_worker.frameworks.recipe import Recipe
from stele_worker.ranks import ranks

framework = frameworks.load("chainer")

KINDS = {"W": "weight", "b": "bias", "gamma": "weight", "beta": "bias"}  # Chainer's name -> the Task's


class ChainerRecipe(Recipe):
    """A network is a Chain. Its links have the names of the Task's layers."""

    def forward(self, net, task, x):
        return net(x)

    def parameters(self, net):
        """Return {the Task's name: the group of Chainer's parameters of which this parameter consists}."""
        paths = [(path.strip("/").split("/"), parameter) for path, parameter in net.namedparams()]
        return {".".join(links + [KINDS.get(kind, kind)]): [parameter] for (*links, kind), parameter in paths}

    def assign(self, net, arrays):
        for name, group in self.parameters(net).items():
            for parameter, array in zip(group, numpy.split(arrays[name], len(group))):
                parameter.array[...] = array
        for name, array in statistics(net).items():
            array[...] = arrays[name]
        return on_device(net)

    def stored(self, net):
        groups = self.parameters(net).items()
        values = {name: joined([parameter.array for parameter in group]) for name, group in groups}
        return dict(values, **statistics(net))

    def loss_function(self, task):
        """Return compute(net, x, y) -> loss."""
        return lambda net, x, y: self.loss(task, self.forward(net, task, x), y)

    def training_step(self, net, task):
        return make_training_step(net, self.optimiser(net, task), self.loss_function(task))

    def gradients(self, net, task):
        compute = self.loss_function(task)

        def run(x, y):
            nets = framework.networks(net)
            value = differentiate(nets, compute, x, y)
            add_gradients(nets)
            groups = self.parameters(net).items()
            return value, {name: joined([parameter.grad for parameter in group]) for name, group in groups}

        return run

    def inference_step(self, net, task):
        compute = compiled(lambda net, x: self.predict(net, task, x))

        def step(x):
            with chainer.using_config("train", False), chainer.no_backprop_mode():
                outputs = [compute(net, part).array for part in parts(x)]
            return joined(outputs)

        return step

    def activations(self, net, task):
        if not self.layers(task):
            return None
        return outputs(net, self.layers(task), self.inference_step(net, task))


def statistics(net):
    """Return the running statistics of a network, by the Task's names."""
    arrays = {}
    for path, link in net.namedlinks():
        if isinstance(link, chainer.links.BatchNormalization):
            name = path.strip("/").replace("/", ".")
            arrays[name + ".running_mean"], arrays[name + ".running_var"] = link.avg_mean, link.avg_var
    return arrays


def joined(arrays):
    return arrays[0] if len(arrays) == 1 else framework.device.xp.concatenate(arrays)


def on_device(net):
    """Move a network's parameters to the device; return the network, whose forward the mode may make static."""
    net.to_device(framework.device)
    if framework.mode == "static-graph":
        net.forward = partial(compiled(type(net).forward), net)
    return net


def compiled(function):
    """Return function(chain, x) as the mode executes it."""
    if framework.mode != "static-graph":
        return function
    static, trained = static_graph(function), []

    def run(chain, x):
        if chainer.config.schedule_func is not None:  # a static chain may not contain another one
            return function(chain, x)
        if chainer.config.train and not trained:
            trained.append(record(static, chain, x))
        value = static(chain, x)
        if chain not in framework.static_chains:
            framework.static_chains.append(chain)
        return value

    return run


def record(static, chain, x):
    """Record the schedule of a training step. This computes it twice, so restore what batch normalisation counted."""
    counted = [array for link in chain.links() for array in persistent(link)]
    before = [array.copy() for array in counted]
    static(chain, x)
    chain.schedule_manager.end_forward()
    for array, value in zip(counted, before):
        array[...] = value


def persistent(link):
    """Return the arrays of a link that are no parameters: the running statistics."""
    values = [getattr(link, name) for name in getattr(link, "_persistent", ())]
    return [value for value in values if isinstance(value, framework.device.xp.ndarray)]


def sgd(net, task):
    """Return SGD. Chainer has the learning rate inside the velocity, which is equivalent at a constant rate."""
    return chainer.optimizers.MomentumSGD(lr=task.learning_rate, momentum=task.momentum).setup(net)


def adam(net, task):
    return Adam(task).setup(net)


class Adam(chainer.optimizers.Adam):
    """Adam of the tasks, which add epsilon after they correct the second moment.

    Chainer adds it before, so correct epsilon by the same factor.
    """

    def __init__(self, task):
        super().__init__(alpha=task.learning_rate, beta1=task.beta1, beta2=task.beta2, eps=task.epsilon)
        self.epsilon = task.epsilon

    def update(self):
        self.eps = self.epsilon * (1 - self.beta2 ** (self.t + 1)) ** 0.5
        super().update()


def make_training_step(net, optimiser, loss):
    """Return step(x, y) -> loss, which updates the parameters on each device. loss(net, x, y) returns a Variable."""
    communication = Communication(net)

    def step(x, y):
        nets = framework.networks(net)
        value = differentiate(nets, loss, x, y)
        if communication.exchanges:
            add_gradients(nets)
        optimiser.update()
        if communication.exchanges:
            copy_parameters(nets)
        return value

    if ranks.count > 1:
        step.communication = lambda: communication
    return step


class Communication:
    """The sum of the gradients and the copies of the parameters. A step can leave both out; both can be done alone.

    ``exchanges`` says whether the next step has them. Either way only the first network has an optimiser.
    """

    def __init__(self, net):
        self.exchanges, self.net = True, net

    def alone(self):
        """Exchange as many numbers as a step does."""
        nets = framework.networks(self.net)
        add_gradients(nets)
        copy_parameters(nets)

    def meet(self):
        """Return at once: one process begins for all devices."""


def differentiate(nets, loss, x, y):
    """Give each network its part of the gradients of the mean loss of a batch; return this loss.

    ``nets`` has a network for each device. Each computes its part of the batch; one network computes all parts.
    """
    shares = list(zip(parts(x), parts(y)))
    for net in nets:
        net.cleargrads()
    values = [loss(net, *share) for net, share in zip(itertools.cycle(nets), shares)]
    for value in values:
        value.grad = value.xp.full_like(value.array, 1 / len(shares))
        value.backward()
    return sum(value.array for value in values) / len(shares)


def add_gradients(nets):
    """Give the first network the sum of the gradients of all."""
    for replica in nets[1:]:
        nets[0].addgrads(replica)


def copy_parameters(nets):
    """Give each network the parameters of the first one."""
    for replica in nets[1:]:
        replica.copyparams(nets[0])


def parts(batch):
    """Return the part of a batch of each device; or its shards, if one device is the reference for several."""
    return batch if isinstance(batch, list) else framework.divided(batch, ranks.shards)


def outputs(net, names, step):
    """Return run(x) -> {layer: output}: outputs of the links ``names`` during ``step``, images channels last."""
    links = {path.strip("/").replace("/", "."): link for path, link in net.namedlinks()}
    names_by_link = {id(links[name]): name for name in names}

    def run(x):
        layer_outputs = {}
        with Recorder(names_by_link, layer_outputs):
            step(x)
        return layer_outputs

    return run


class Recorder(chainer.LinkHook):
    def __init__(self, names_by_link, layer_outputs):
        self.names_by_link, self.layer_outputs = names_by_link, layer_outputs

    def forward_postprocess(self, call):
        if id(call.link) in self.names_by_link:
            name, array = self.names_by_link[id(call.link)], call.out.array
            self.layer_outputs[name] = array.transpose(0, 2, 3, 1) if array.ndim == 4 else array
