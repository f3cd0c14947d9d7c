"""What the recipes of PaddlePaddle 1 have in common: steps, gradients and optimisers."""

import tempfile

import paddle.fluid as fluid
from paddle.fluid.core import AnalysisConfig, create_paddle_predictor
from paddle.fluid.dygraph.base import switch_to_static_graph
from paddle.fluid.dygraph.jit import declarative

from stele_worker import frameworks
from stele_worker.frameworks.recipe import Recipe

framework = frameworks.load("paddle1")


class Paddle1Recipe(Recipe):
    """A network is a Layer of ``fluid.dygraph``."""

    MKLDNN = True  # whether Paddle Inference has operations of MKL-DNN
    NAMES = {}  # {the Task's name of a parameter: the network's}, where they differ

    def forward(self, net, task, *inputs):
        return net(*inputs)

    def is_of_task(self, name):
        """Return whether the Task has a parameter of the network."""
        return True

    def assign(self, net, arrays):
        for name, value in self.stored(net).items():
            value.set_value(arrays[name])
        return net

    def stored(self, net):
        names = {own: name for name, own in self.NAMES.items()}
        values = net.named_parameters()
        return {names.get(name, name_of(name)): value for name, value in values if self.is_of_task(name)}

    def loss_function(self, net, task):
        """Return compute(*inputs, y) -> loss."""

        def compute(*arrays):
            *inputs, y = arrays
            return self.loss(task, self.forward(net, task, *inputs), y)

        return compute

    def training_step(self, net, task):
        return make_training_step(net, self.optimiser(net, task), self.loss_function(net, task))

    def gradients(self, net, task):
        loss = self.loss_function(net, task)
        if framework.mode == "program":
            return program_gradients(net, loss, self.stored(net))
        set_training(net, True)
        compute = compiled(net, loss)

        def run(*arrays):
            net.train()
            net.clear_gradients()
            value = compute(*arrays)
            value.backward()
            # Paddle also lists running statistics as parameters, without a gradient
            grads = {name: gradient(weight) for name, weight in self.stored(net).items()}
            return value.detach(), {name: grad for name, grad in grads.items() if grad is not None}

        return run

    def inference_step(self, net, task):
        """Return step(*inputs) -> what ``predict`` returns: with Paddle Inference; imperatively as shipped."""
        set_training(net, False)
        if framework.mode == "dygraph":
            return make_inference_step(Prediction(self, net, task), self.MKLDNN)
        return fluid.dygraph.no_grad(compiled(net, lambda *inputs: self.predict(net, task, *inputs)))

    def activations(self, net, task):
        if not self.layers(task):
            return None
        return outputs(net, self.layers(task), lambda *inputs: self.forward(net, task, *inputs))


def name_of(name):
    """Return the Task's name of a parameter of the network."""
    return name.replace("._mean", ".running_mean").replace("._variance", ".running_var")


class Prediction(fluid.dygraph.Layer):
    """What a recipe predicts, as the layer that Paddle traces for Paddle Inference."""

    def __init__(self, recipe, net, task):
        super().__init__()
        self.recipe, self.net, self.task = recipe, net, task

    def forward(self, *inputs):
        return self.recipe.predict(self.net, self.task, *inputs)


def set_training(net, training):
    """Set what dropout and batch normalisation do; in a Program, the second reads it from another attribute."""
    (net.train if training else net.eval)()
    for layer in net.sublayers():
        if hasattr(layer, "_is_test"):
            layer._is_test = not training


def compiled(net, function):
    """Return a function of tensors as the mode executes it; in mode "program", it has no gradients."""
    if framework.mode == "program":
        run = program(net, lambda *inputs: [function(*inputs)])
        return lambda *arrays: run(*arrays)[0]
    return declared(net, function) if framework.mode == "declarative" else function


def declared(net, function):
    """Return a function of tensors that ``@declarative`` converts into a Program at the first call."""

    def call(net, *arrays):  # a Program has the parameters of the first argument; conversion loses closures
        return net.declared(*arrays)

    converted = declarative(call)

    def run(*arrays):
        net.declared = function
        return converted(net, *arrays)

    return run


def program(net, function, scope=None):
    """Return run(*arrays) -> the values of the list function(*inputs), computed by an Executor as one Program.

    ``scope`` has the variables that stay from one run to the next.
    """
    scope = fluid.Scope() if scope is None else scope
    made = []

    @switch_to_static_graph
    def run(*arrays):
        if not made:  # at the first step, from its batch
            made.append(make_program(net, function, scope, arrays))
        main, outputs = made[0]
        feed = {"x{}".format(i): array.value().get_tensor() for i, array in enumerate(arrays)}
        # the cache keeps the Program as it was prepared for its first run
        return framework.executor.run(main, feed, outputs, scope=scope, return_numpy=False, use_program_cache=True)

    return run


def make_program(net, function, scope, arrays):
    """Return a Program of function(*inputs), and its outputs. Its parameters share the memory of the network's."""
    main, startup = fluid.Program(), fluid.Program()
    for parameter in net.parameters():
        scope.var(parameter.name).get_tensor()._share_data_with(parameter.value().get_tensor())
    with fluid.program_guard(main, startup):
        inputs = [
            fluid.data("x{}".format(i), [None] + list(array.shape[1:]), array.dtype) for i, array in enumerate(arrays)
        ]
        outputs = function(*inputs)
    if startup.global_block().ops:  # it initialises what an optimiser needs
        framework.executor.run(startup, scope=scope)
    framework.built.append(main)
    return main, outputs


def constant(layer, array):
    """Return an array as a parameter of a layer that is not trained: a Program knows only parameters."""
    initial = fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(array), trainable=False)
    return layer.create_parameter(list(array.shape), attr=initial)


def as_variable(parameter):
    """Return a parameter as a Variable in a Program. Paddle itself converts only those of the layer that it calls."""
    if fluid.in_dygraph_mode() or not isinstance(parameter, fluid.core.VarBase):
        return parameter
    facts = parameter.block, parameter.shape, parameter.dtype, parameter.type
    return fluid.framework.Parameter(*facts, name=parameter.name)


def drop(x, rate, training):
    """Return x with numbers dropped out, and the others scaled up, in training."""
    if not training and not fluid.in_dygraph_mode():
        return x  # declarative also differentiates the inference, which dropout refuses
    # one seed gives one mask; a Program keeps its seed, so without one
    seed = framework.seeds.randint(1, 2**31) if training and fluid.in_dygraph_mode() else None
    scaled = "upscale_in_train"
    return fluid.layers.dropout(x, rate, is_test=not training, seed=seed, dropout_implementation=scaled)


def gradient(parameter):
    """Return the gradient of a parameter without a copy; ``parameter.gradient()`` copies it to numpy."""
    return parameter._grad_ivar()


def program_gradients(net, loss, weights):
    """Return run(*inputs, y) -> (loss, {parameter: gradient}), computed as one Program."""
    names = {weight.name: name for name, weight in weights.items()}
    with_gradient = []  # names of parameters

    def differentiate(*arrays):
        value = loss(*arrays)
        pairs = fluid.backward.append_backward(value, parameter_list=list(names))
        with_gradient[:] = [names[weight.name] for weight, _ in pairs]
        return [value] + [gradient for _, gradient in pairs]

    run = program(net, differentiate)

    def run_named(*arrays):
        set_training(net, True)
        value, *grads = run(*arrays)
        return value, dict(zip(with_gradient, grads))

    return run_named


def make_inference_step(layer, mkldnn):
    """Return step(*inputs) -> layer(*inputs) with Paddle Inference."""
    predictors = []  # created at the first step, from its batch

    def step(*inputs):
        if not predictors:
            predictors.append(make_predictor(layer, inputs, mkldnn))
        (predict,) = predictors
        for name, x in zip(predict.get_input_names(), inputs):
            predict.get_input_tensor(name).copy_from_cpu(x.numpy())
        predict.zero_copy_run()
        return predict.get_output_tensor(predict.get_output_names()[0]).copy_to_cpu()

    return step


def make_training_step(net, optimiser, loss):
    """Return step(*inputs, y) -> loss, which updates the parameters."""
    set_training(net, True)
    if framework.mode == "program":
        return program_step(net, optimiser, loss)
    compute = compiled(net, loss)

    def step(*arrays):
        value = compute(*arrays)
        value.backward()
        optimiser.minimize(value)
        net.clear_gradients()
        return value.detach()

    return step


def program_step(net, optimiser, loss):
    """Return step(*inputs, y) -> loss, in which a Program also updates the parameters."""
    names = [parameter.name for parameter in net.parameters()]
    scope, updates = fluid.Scope(), []

    def minimise(*inputs):
        value = loss(*inputs)
        pairs = optimiser.backward(value, parameter_list=names)
        if isinstance(optimiser, Adam):
            updates.append(update_program(optimiser, pairs))
        else:
            optimiser.apply_gradients(pairs)
        return [value]

    run = program(net, minimise, scope)

    def step(*arrays):
        (value,) = run(*arrays)
        if isinstance(optimiser, Adam):
            optimiser.correct_epsilon()
            update_parameters(updates[0], scope, optimiser._epsilon)
        return value

    return step


def update_program(optimiser, pairs):
    """Return another Program, which updates the parameters from gradients that the first one leaves in the scope."""
    update = fluid.Program()
    with fluid.program_guard(update):
        optimiser.apply_gradients([shared(update.global_block(), *pair) for pair in pairs])
    return update


def shared(block, weight, grad):
    """Return a parameter and its gradient as variables of another Program, which finds them in the scope."""
    grad.persistable = True
    kept = block.create_var(name=grad.name, shape=grad.shape, dtype=grad.dtype, persistable=True)
    return fluid.framework.Parameter(block, weight.shape, weight.dtype, name=weight.name), kept


@switch_to_static_graph
def update_parameters(update, scope, epsilon):
    """Run the update with another epsilon. It is an attribute, which a Program that is kept does not read again."""
    for operation in update.global_block().ops:
        operation._set_attr("epsilon", epsilon)
    framework.executor.run(update, scope=scope)


@switch_to_static_graph  # imperatively, Paddle refuses to create it
def recomputing(optimiser, kept):
    """Return an optimiser whose backward pass computes all but the Variables ``kept`` again. Only a Program can.

    The network has listed them in ``kept`` when the backward pass is built.
    """
    if framework.mode != "program":
        return optimiser
    optimiser = fluid.optimizer.RecomputeOptimizer(optimiser)
    optimiser._set_checkpoints(kept)
    return optimiser


def momentum(net, task):
    """Return SGD with momentum."""
    return fluid.optimizer.MomentumOptimizer(
        task.learning_rate, task.momentum, parameter_list=net.parameters(), use_nesterov=False
    )


class Adam(fluid.optimizer.AdamOptimizer):
    """Adam as the Task has it.

    Paddle adds epsilon before it corrects the second moment, the Task adds it after. So epsilon is corrected by the
    same factor; without it the tenth loss of the GRU is 6e-4 off.
    """

    def __init__(self, net, task):
        super().__init__(
            task.learning_rate,
            beta1=task.beta1,
            beta2=task.beta2,
            epsilon=task.epsilon,
            parameter_list=net.parameters(),
            lazy_mode=False,  # update every row of an embedding, as the Task's Adam does
        )
        self.task, self.count = task, 0

    def correct_epsilon(self):
        self.count += 1
        self._epsilon = self.task.epsilon * (1 - self.task.beta2**self.count) ** 0.5

    def minimize(self, loss):
        self.correct_epsilon()
        return super().minimize(loss)


def outputs(net, names, step):
    """Return run(*inputs) -> {layer: output}: of the layers ``names`` during ``step``, images channels last."""
    layers = dict(net.named_sublayers())

    def run(*inputs):
        layer_outputs = {}

        def recording_hook(name):
            return lambda layer, inputs, output: layer_outputs.update({name: channels_last(output)})

        hooks = [layers[name].register_forward_post_hook(recording_hook(name)) for name in names]
        net.eval()
        with fluid.dygraph.no_grad():
            step(*inputs)
        for hook in hooks:
            hook.remove()
        return layer_outputs

    return run


def channels_last(output):
    return fluid.layers.transpose(output, (0, 2, 3, 1)) if len(output.shape) == 4 else output


def make_predictor(layer, inputs, mkldnn):
    """Return a Paddle Inference predictor of the operations of layer(*inputs), with or without MKL-DNN."""
    with fluid.dygraph.no_grad():
        _, traced = fluid.dygraph.TracedLayer.trace(layer, list(inputs))
    with tempfile.TemporaryDirectory() as folder:
        traced.save_inference_model(folder)
        config = AnalysisConfig(folder)
        config.disable_gpu()
        config.disable_glog_info()
        config.switch_use_feed_fetch_ops(False)  # for zero_copy_run
        config.set_cpu_math_library_num_threads(framework.threads)
        if mkldnn:
            config.enable_mkldnn()
            config.set_mkldnn_op(framework.MKLDNN)
        return create_paddle_predictor(config)
