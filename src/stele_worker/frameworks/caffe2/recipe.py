"""What the recipes of Caffe2 have in common: blobs, models, steps and gradients."""

import numpy
from caffe2.proto import caffe2_pb2
from caffe2.python import brew, core, optimizer, recurrent, workspace
from caffe2.python.model_helper import ModelHelper

from stele_worker.frameworks.caffe2.framework import CPU, ONEDNN
from stele_worker.frameworks.recipe import Recipe

# brew's names of the blobs of a layer
PARTS = {"weight": "_w", "bias": "_b", "running_mean": "_rm", "running_var": "_riv"}


class Model(ModelHelper):
    """Operators on parameters that are already in the workspace.

    ``gradients`` are those that ``differentiate`` computes: {parameter: blob}.
    """

    def __init__(self, name, device, parameters, training):
        super().__init__(name=name, init_params=False, arg_scope={"order": "NCHW", "use_cudnn": False})
        self.device, self.training = device, training
        self.blobs, self.gradients = parameters, {}
        for blob in parameters:
            self.param_init_net.AddExternalInput(blob)  # otherwise an optimiser finds it undefined
        for net in (self.net, self.param_init_net):
            net.Proto().device_option.CopyFrom(device)

    def differentiate(self, loss):
        gradients = self.AddGradientOperators([loss])
        self.gradients = {blob: gradients[blob] for blob in self.blobs if blob in gradients}


class Caffe2Recipe(Recipe):
    """A network is {parameter: [blob]}: blobs in the workspace, between which the parameter is divided.

    forward(model, task, x) adds operators to a Model, once for each step. Layers of brew have the names of the Task.
    """

    BLOBS = {}  # {parameter: [blob]}, where the blobs are not brew's

    def network(self, task):
        return {}

    def device(self):
        """Return the device of the operators and of the parameters."""
        return self.framework.device

    def assign(self, net, arrays):
        for name, array in arrays.items():
            layer, _, part = name.rpartition(".")
            is_scale = part == "weight" and array.ndim == 1
            net[name] = self.BLOBS.get(name) or [layer + ("_s" if is_scale else PARTS[part])]
            for blob, values in zip(net[name], numpy.split(array, len(net[name]))):
                workspace.FeedBlob(blob, values, self.device())
        return net

    def stored(self, net):
        return {name: fetch_joined(blobs) for name, blobs in net.items()}

    def model(self, name, net, training):
        blobs = [blob for blobs in net.values() for blob in blobs]
        return Model(name, self.device(), blobs, training)

    def add_operators(self, model, function, task):
        """Return function(model, task, "x"), in which layers have the arguments of training or of inference."""
        layers = brew.arg_scope([brew.conv, brew.fc], training_mode=int(model.training))
        with layers, brew.arg_scope(brew.spatial_bn, is_test=not model.training):
            return function(model, task, "x")

    def differentiated(self, name, net, task):
        """Return a Model that computes the loss and the gradients, and the blob of the loss."""
        model = self.model(name, net, training=True)
        loss = self.loss(task, self.add_operators(model, self.forward, task), "y")
        model.differentiate(loss)
        return model, loss

    def training_step(self, net, task):
        """Return the step. ``optimiser`` returns update(), which is called after each run of the model."""
        model, loss = self.differentiated("train", net, task)
        update = self.optimiser(model, task)
        run = self.runner(model)

        def step(x, y):
            run(x=x, y=y)
            update()
            return workspace.FetchBlob(loss)

        return step

    def gradients(self, net, task):
        model, loss = self.differentiated("gradients", net, task)
        grads = {
            name: [model.gradients[blob] for blob in blobs]
            for name, blobs in net.items()
            if blobs[0] in model.gradients
        }
        run = self.runner(model)

        def compute(x, y):
            run(x=x, y=y)
            return workspace.FetchBlob(loss), {name: fetch_joined(blobs) for name, blobs in grads.items()}

        return compute

    def inference_step(self, net, task):
        model = self.model("infer", net, training=False)
        output = self.add_operators(model, self.predict, task)
        run = self.runner(model)

        def step(x):
            run(x=x)
            return workspace.FetchBlob(output)

        return step

    def runner(self, model):
        """Return run(x=blob, ...), which runs the model's net with that blob as "x". New blobs get a new net."""
        nets = {}
        for operator in model.net.Proto().op:
            if operator.type.startswith("RecurrentNetwork"):  # by default it uses four threads
                recurrent.set_rnn_executor_config(operator, num_threads=self.framework.threads)

        def run(**blobs):
            key = tuple(blobs.values())
            if key not in nets:
                nets[key] = model.net.Clone(model.name, blob_remap=blobs)
                workspace.CreateNet(nets[key])
            workspace.RunNet(nets[key])

        return run


def fetch_joined(blobs):
    return numpy.concatenate([workspace.FetchBlob(blob) for blob in blobs])


def cross_entropy(logits, y):
    _, loss = logits.SoftmaxWithLoss(y, ["probabilities", "loss"])
    return loss


def dropout(model, x, shape, rate, seed):
    """Apply dropout in training to "x"; its samples have ``shape``.

    oneDNN's operator takes no seed, and reads the padded blocks of channels of its layers as plain arrays. So
    with oneDNN the CPU's operator makes a mask, with one row per label in "y".
    """
    if not model.training:
        return x
    seeded_cpu = core.DeviceOption(caffe2_pb2.CPU, random_seed=seed)
    if model.device is CPU:
        return brew.dropout(model, x, x + "_drop", ratio=rate, is_test=False, device_option=seeded_cpu)
    ones = model.net.ConstantFill("y", x + "_ones", extra_shape=shape, value=1.0, device_option=CPU)
    mask = brew.dropout(model, ones, x + "_mask", ratio=rate, is_test=False, device_option=seeded_cpu)
    mask = model.net.StopGradient(mask, mask, device_option=CPU)
    return model.net.Mul([x, mask], x + "_drop")


def sgd(model, task):
    """Add SGD to the operators of a model; there is nothing else to update."""
    for parameter in model.GetOptimizationParamInfo():
        # oneDNN's MomentumSGDUpdate expects gradients in the plain layout
        if model.device is ONEDNN and len(parameter.shape) > 1:
            parameter.grad = model.net.Flatten(parameter.grad, parameter.grad + "_plain")
    rates = {"base_learning_rate": task.learning_rate, "policy": "fixed"}
    optimizer.build_sgd(model, momentum=task.momentum, nesterov=False, **rates)
    workspace.RunNetOnce(model.param_init_net)
    return lambda: None
