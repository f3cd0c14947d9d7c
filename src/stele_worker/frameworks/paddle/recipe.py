"""What the recipes of PaddlePaddle 3 have in common: steps, gradients and optimisers."""

import os
import tempfile

import numpy
import paddle
from paddle import inference

from stele_worker import frameworks
from stele_worker.frameworks.paddle.framework import ONEDNN
from stele_worker.frameworks.recipe import Recipe
from stele_worker.ranks import ranks

framework = frameworks.load("paddle")

compiled = framework.compiled


class PaddleRecipe(Recipe):
    """A network is a Layer. ``forward`` and ``predict`` call it, so to_static can convert them."""

    NAMES = {}  # {the Task's name of a parameter: the network's}, where they differ

    def forward(self, net, task, *inputs):
        return net(*inputs)

    def is_of_task(self, name):
        """Return whether the Task has a parameter or buffer of the network."""
        return True

    def assign(self, net, arrays):
        for name, value in self.stored(net).items():
            value.set_value(arrays[name])
        return net

    def stored(self, net):
        names = {own: name for name, own in self.NAMES.items()}
        values = net.state_dict().items()
        return {names.get(name, name_of(name)): value for name, value in values if self.is_of_task(name)}

    def loss_function(self, net, task):
        """Return compute(*inputs, y) -> loss."""

        def compute(*arrays):
            return self.loss(task, self.forward(net, task, *arrays[:-1]), arrays[-1])

        return compute

    def training_step(self, net, task):
        return make_training_step(net, self.optimiser(net, task), self.loss_function(net, task))

    def gradients(self, net, task):
        compute = compiled_loss(on_all_devices(net, self.loss_function(net, task)))

        def run(*arrays):
            net.train()
            net.clear_gradients()
            loss = compute(*arrays)
            loss.backward()
            # Paddle also lists running statistics as parameters, without a gradient
            grads = {name: weight.grad for name, weight in self.stored(net).items()}
            return loss.detach(), {name: grad for name, grad in grads.items() if grad is not None}

        return run

    def inference_step(self, net, task):
        prediction = Prediction(self, net, task)
        prediction.eval()
        if framework.mode == "dygraph":
            return make_inference_step(prediction)
        forward = compiled(prediction.forward)

        def step(*inputs):
            with paddle.no_grad():
                return forward(inputs)

        # to_static has only a weak reference to it
        step.layer = prediction
        return step

    def evaluation_step(self, net, task):
        """Return ``inference_step`` without Paddle Inference, for a network whose training goes on.

        Paddle Inference would have to export the network after each epoch.
        """
        prediction = Prediction(self, net, task)
        forward = compiled(prediction.forward)

        def step(*inputs):
            prediction.eval()
            with paddle.no_grad():
                output = forward(inputs)
            prediction.train()
            return output

        return step

    def activations(self, net, task):
        if not self.layers(task):
            return None
        return outputs(net, self.layers(task), lambda *inputs: self.forward(net, task, *inputs))


def name_of(name):
    """Return the Task's name of a parameter or buffer of the network."""
    return name.replace("._mean", ".running_mean").replace("._variance", ".running_var")


class Prediction(paddle.nn.Layer):
    """What a recipe predicts, as the layer that Paddle Inference saves. Its argument is the tuple of the inputs."""

    def __init__(self, recipe, net, task):
        super().__init__()
        self.recipe, self.net, self.task = recipe, net, task

    def forward(self, inputs):
        return self.recipe.predict(self.net, self.task, *inputs)


def compiled_loss(loss):
    """Return loss(*arrays) as the mode executes it."""
    if framework.mode not in framework.STATIC:
        return loss

    def compute(arrays):  # to_static knows no ``*arrays``
        return loss(*arrays)

    run = compiled(compute)
    return lambda *arrays: run(arrays)


def momentum(net, task):
    """Return SGD with momentum."""
    return paddle.optimizer.Momentum(
        task.learning_rate, task.momentum, net.parameters(), use_nesterov=False, weight_decay=None
    )


def adam(net, task):
    """Return Adam, which updates every row of an embedding, as the Task's does."""
    return paddle.optimizer.Adam(
        task.learning_rate,
        beta1=task.beta1,
        beta2=task.beta2,
        epsilon=task.epsilon,
        parameters=net.parameters(),
        weight_decay=None,
        lazy_mode=False,
    )


def make_inference_step(layer):
    """Return step(*inputs) -> layer(inputs) with Paddle Inference."""
    predictors = []  # created at the first step, from its batch

    def step(*inputs):
        if not predictors:
            predictors.append(make_predictor(layer, inputs))
        return predictors[0].run(list(inputs))[0]

    return step


def make_training_step(net, optimiser, loss):
    """Return step(*inputs, y) -> loss, which updates the parameters."""
    on_all = on_all_devices(net, loss)
    compute = compiled_loss(on_all)
    net.train()

    def step(*arrays):
        value = compute(*arrays)
        value.backward()
        optimiser.step()
        optimiser.clear_grad()
        return value.detach()

    def restore(saved):
        restore_network(net, saved)
        restore_slots(net, optimiser, part(saved, "slot."))

    step.state = lambda: dict(network_state(net), **to_arrays(slots(net, optimiser), "slot."))
    step.restore = restore
    if isinstance(on_all, paddle.DataParallel):
        step.communication = lambda: Communication(on_all)
    return step


class Loss(paddle.nn.Layer):
    """A network and its loss as one layer, whose parameters DataParallel synchronises."""

    def __init__(self, net, loss):
        super().__init__()
        self.net, self.loss = net, loss

    def forward(self, *arrays):
        return self.loss(*arrays)


def on_all_devices(net, loss):
    """Return a loss whose gradients are the means over all ranks; or over shards of a batch, if that is configured."""
    if ranks.processes > 1:
        return paddle.DataParallel(Loss(net, loss))
    return ranks.mean_over_shards(loss, paddle.chunk)


class Communication:
    """The exchange of gradients of DataParallel. A step can leave it out, and it can be done alone.

    ``exchanges`` says whether the next step has it.
    """

    def __init__(self, parallel):
        self.parallel = parallel
        sizes = [weight.size for weight in parallel.parameters() if weight.trainable]
        groups = reversed(parallel.group_indices)  # the gradients of the last layer come first
        self.buffers = [paddle.zeros([sum(sizes[index] for index in group)]) for group in groups]

    @property
    def exchanges(self):
        return self.parallel.grad_need_sync

    @exchanges.setter
    def exchanges(self, exchanges):
        self.parallel.grad_need_sync = exchanges  # what no_sync() changes

    def alone(self):
        """Exchange as many numbers, in the same groups, as the steps did."""
        works = [paddle.distributed.all_reduce(numbers, sync_op=False) for numbers in self.buffers]
        for work in works:
            work.wait()

    def meet(self):
        """Return when all ranks have called this."""
        paddle.distributed.barrier()


def to_arrays(tensors, prefix):
    return {prefix + name: value.numpy() for name, value in tensors.items()}


def part(arrays, prefix):
    """Return the arrays whose names begin with ``prefix``, without it."""
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def network_state(net):
    """Return the network and the random generator as named arrays."""
    *numbers, engine = paddle.get_rng_state()[0].__getstate__()
    random = {"random": numpy.array(numbers), "engine": numpy.array(engine)}
    return dict(to_arrays(net.state_dict(), "net."), **random)


def restore_network(net, state):
    net.set_state_dict(part(state, "net."))
    kind = type(paddle.get_rng_state()[0])
    generator = kind.__new__(kind)
    generator.__setstate__((*state["random"].tolist(), state["engine"].tolist()))
    paddle.set_rng_state([generator])


def slots(net, optimiser):
    """Return the optimiser's state, in which slots have the names of parameters in the network.

    Paddle's own names of parameters count the layers of the process.
    """
    tensors = optimiser.state_dict()
    for name, parameter in net.named_parameters():
        for slot in part(tensors, parameter.name + "_"):
            tensors["{}/{}".format(name, slot)] = tensors.pop("{}_{}".format(parameter.name, slot))
    return tensors


def restore_slots(net, optimiser, state):
    tensors = {name: array for name, array in state.items() if "/" not in name}
    for name, parameter in net.named_parameters():
        of_parameter = part(state, name + "/")
        tensors.update({"{}_{}".format(parameter.name, slot): array for slot, array in of_parameter.items()})
    optimiser.set_state_dict(tensors)


def outputs(net, names, step):
    """Return run(*inputs) -> {layer: output}: of the layers ``names`` during ``step``, images channels last."""
    layers = dict(net.named_sublayers())

    def run(*inputs):
        layer_outputs = {}

        def recording_hook(name):
            return lambda layer, inputs, output: layer_outputs.update({name: channels_last(output)})

        hooks = [layers[name].register_forward_post_hook(recording_hook(name)) for name in names]
        net.eval()
        with paddle.no_grad():
            step(*inputs)
        for hook in hooks:
            hook.remove()
        return layer_outputs

    return run


def channels_last(output):
    return output.transpose((0, 2, 3, 1)) if output.ndim == 4 else output


def make_predictor(layer, inputs):
    """Return a Paddle Inference predictor of layer(inputs), with oneDNN operations on a CPU."""
    specs = tuple(paddle.static.InputSpec([None] + x.shape[1:], x.dtype) for x in inputs)  # None: of any number
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net")
        paddle.jit.save(layer, path, input_spec=[specs])
        config = inference.Config(path + ".json", path + ".pdiparams")
        config.disable_glog_info()
        config.set_cpu_math_library_num_threads(framework.threads)
        if framework.device == "cuda":
            config.enable_use_gpu(100, 0)  # initial memory in MB, and the GPU number
        else:
            getattr(config, "enable_" + ONEDNN)()
        return inference.create_predictor(config)
