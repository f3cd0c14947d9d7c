"""What the recipes of Gluon have in common: steps, gradients and optimisers."""

import mxnet as mx
from mxnet import autograd, gluon

from stele_worker import frameworks
from stele_worker.frameworks.recipe import Recipe
from stele_worker.ranks import ranks

framework = frameworks.load("mxnet_gluon")

# parts of MXNet's names of parameters -> parts of the Task's names
NAMES = {"gamma": "weight", "beta": "bias", "l0_i2h": "input", "l0_h2h": "hidden"}


class GluonRecipe(Recipe):
    """A network is a HybridBlock. With the prefixes of its blocks, parameters have nearly the Task's names."""

    def body(self, net):
        """Return the block that inference computes."""
        return net

    def losses(self):
        """Return a block that computes the loss of each sample, in place of ``loss``: Gluon adds their gradients."""
        raise NotImplementedError

    def assign(self, net, arrays):
        graph(net)
        for name, parameter in parameters(net).items():
            parameter.set_data(framework.put(arrays[name]))
        return net

    def stored(self, net):
        return {name: parameter.data() for name, parameter in parameters(net).items()}

    def training_step(self, net, task):
        losses, trainer = graph(self.losses()), self.optimiser(net, task)

        def step(x, y):
            with autograd.record(train_mode=True):
                values = [losses(net(x), y) for x, y in zip(parts(x), parts(y))]  # each (batch / parts,)
            autograd.backward(values)  # of the summed loss
            loss = joined(values)
            trainer.step(len(loss))  # adds the gradients of the devices, and divides by the batch
            return loss.mean()

        return step

    def gradients(self, net, task):
        losses = graph(self.losses())
        trained = {name: weight for name, weight in parameters(net).items() if weight.grad_req != "null"}
        trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore=kvstore(), update_on_kvstore=False)

        def run(x, y):
            shares = list(zip(parts(x), parts(y)))
            with autograd.record(train_mode=True):
                means = [losses(net(x), y).mean() / len(shares) for x, y in shares]
            autograd.backward(means)
            trainer.allreduce_grads()
            return joined(means).sum(), {name: weight.grad(framework.device) for name, weight in trained.items()}

        return run

    def inference_step(self, net, task):
        block, ready = self.body(net), []

        def step(x):
            with autograd.predict_mode():
                if framework.mode == "onednn" and not ready:
                    block.optimize_for(x, backend="MKLDNN", **framework.options())
                    ready.append(True)
                return joined([block(part) for part in x]) if isinstance(x, list) else block(x)

        return step


def graph(block):
    """Make a block compute as the mode says, with its parameters on each device; return the block."""
    block.initialize(mx.init.Zero(), ctx=framework.contexts)
    block.hybridize(active=framework.mode != "imperative", **framework.options())
    framework.blocks.append(block)
    return block


def parameters(net):
    """Return parameters and running statistics by the Task's names."""
    named = {}
    for name, parameter in net.collect_params().items():
        for part, of_task in NAMES.items():
            name = name.replace(part, of_task)
        named[name] = parameter
    return named


def relu(F, x):
    """Return max(x, 0) in oneDNN's own layout of x. F.relu first copies x to a plain layout."""
    return F.Activation(x, act_type="relu")


def kvstore():
    """Return what adds the gradients of several devices in a Trainer; None for one device."""
    return "device" if len(framework.contexts) > 1 else None


def sgd(net, task):
    """Return a Trainer. MXNet has the learning rate inside the velocity, which is equivalent at a constant rate."""
    constants = {"learning_rate": task.learning_rate, "momentum": task.momentum, "wd": 0.0}
    return gluon.Trainer(net.collect_params(), "sgd", constants, kvstore=kvstore())


class Adam(gluon.Trainer):
    """Adam of the tasks, which add epsilon after they correct the second moment.

    MXNet adds it before, so correct epsilon by the same factor.
    """

    def __init__(self, net, task):
        constants = {"learning_rate": task.learning_rate, "beta1": task.beta1, "beta2": task.beta2, "wd": 0.0}
        super().__init__(net.collect_params(), "adam", dict(constants, lazy_update=False), kvstore=kvstore())
        self.beta2, self.epsilon = task.beta2, task.epsilon

    def step(self, batch):
        count = self.optimizer.num_update + 1
        self.optimizer.epsilon = self.epsilon * (1 - self.beta2**count) ** 0.5
        super().step(batch)


def parts(batch):
    """Return the part of a batch on each device; or its shards, if one device is the reference for several.

    Each device computes all of a batch that ``take`` has not divided.
    """
    if isinstance(batch, list):
        return batch
    if ranks.shards == 1:
        return [batch.as_in_context(context) for context in framework.contexts]
    return gluon.utils.split_data(batch, ranks.equal_shares(len(batch), ranks.shards))


def joined(values):
    """Return the values of the parts of a batch as one array on the first device."""
    if len(values) == 1:
        return values[0]
    return mx.nd.concat(*[value.as_in_context(framework.device) for value in values], dim=0)
