"""PaddlePaddle 1: layers of ``fluid.dygraph``, executed imperatively, as a Program, or by ``@declarative``."""

import itertools
import os
import tempfile

import numpy
import paddle
import paddle.fluid as fluid
from paddle.fluid.core import AnalysisConfig, create_paddle_predictor
from paddle.fluid.dygraph.base import switch_to_static_graph
from paddle.fluid.dygraph.jit import declarative

from stele_worker import modes

# operations of MKL-DNN in inference; its matmul is wrong if a network has several of one shape
MKLDNN = {"conv2d", "batch_norm", "pool2d", "relu", "elementwise_add"}

MODES = ("dygraph", "as-shipped", "program", "declarative")
STATIC = ("program", "declarative")
threads = 1
mode = "dygraph"
built = []  # the Programs that were built
executor = fluid.Executor(fluid.CPUPlace())
seeds = numpy.random.RandomState(0)  # of dropout


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings."""
    global threads, mode, seeds
    threads, mode = settings["threads"], settings["mode"]
    seeds = numpy.random.RandomState(settings["seed"])
    if settings["device"] != "cpu" or settings["precision"] != "fp32":
        message = (
            "Paddle {} is supported on device 'cpu' in precision 'fp32' only, not {device!r} in {precision!r}"
        )
        raise RuntimeError(message.format(paddle.__version__, **settings))
    fluid.set_flags({"FLAGS_paddle_num_threads": threads})
    fluid.set_flags({"FLAGS_cpu_deterministic": settings["deterministic"]})
    # no seed: with a program's seed, dropout draws the same mask at every step
    fluid.enable_imperative(fluid.CPUPlace())


def versions():
    return {"paddle": paddle.version.full_version}


def flags():
    names = ["FLAGS_paddle_num_threads", "FLAGS_cpu_deterministic"]
    active = {name[len("FLAGS_") :]: value for name, value in fluid.get_flags(names).items()}
    openmp = int(os.environ["OMP_NUM_THREADS"])  # the kernels use it; Paddle sets it to 1 if it is not set
    return dict(
        active,
        device="cpu",
        threads=openmp,
        inference_mkldnn=sorted(MKLDNN) if mode == "dygraph" else [],
        mkl_kernels=os.environ.get("MKL_DEBUG_CPU_TYPE"),
    )


def in_force():
    """Return how many Programs were executed, and their operations; 0 in dygraph."""
    converted = [program for program, *_ in fluid.dygraph.ProgramTranslator()._program_cache._caches.values()]
    programs = built + [program.main_program for program in converted]
    done = {
        "programs": len(programs),
        "operations": sum(len(program.global_block().ops) for program in programs),
    }
    return modes.check(mode, done, (done["operations"] > 0) == (mode in STATIC))


def set_training(net, training):
    """Set what dropout and batch normalisation do; in a Program, the second reads it from another attribute."""
    (net.train if training else net.eval)()
    for layer in net.sublayers():
        if hasattr(layer, "_is_test"):
            layer._is_test = not training


def compiled(net, function):
    """Return a function of tensors as the mode executes it; in mode "program", it has no gradients."""
    if mode == "program":
        run = program(net, lambda *inputs: [function(*inputs)])
        return lambda *arrays: run(*arrays)[0]
    return declared(net, function) if mode == "declarative" else function


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
        return executor.run(main, feed, outputs, scope=scope, return_numpy=False, use_program_cache=True)

    return run


def make_program(net, function, scope, arrays):
    """Return a Program of function(*inputs), and its outputs. Its parameters share the memory of the network's."""
    main, startup = fluid.Program(), fluid.Program()
    for parameter in net.parameters():
        scope.var(parameter.name).get_tensor()._share_data_with(parameter.value().get_tensor())
    with fluid.program_guard(main, startup):
        inputs = [
            fluid.data("x{}".format(i), [None] + list(array.shape[1:]), array.dtype)
            for i, array in enumerate(arrays)
        ]
        outputs = function(*inputs)
    if startup.global_block().ops:  # it initialises what an optimiser needs
        executor.run(startup, scope=scope)
    built.append(main)
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
    seed = seeds.randint(1, 2**31) if training and fluid.in_dygraph_mode() else None
    scaled = "upscale_in_train"
    return fluid.layers.dropout(x, rate, is_test=not training, seed=seed, dropout_implementation=scaled)


def gradient(parameter):
    """Return the gradient of a parameter without a copy; ``parameter.gradient()`` copies it to numpy."""
    return parameter._grad_ivar()


def gradients(recipe, net, task):
    """Return run(*inputs, y) -> (loss, {parameter: gradient})."""
    if mode == "program":
        return program_gradients(recipe, net, task)
    set_training(net, True)
    compute = compiled(net, recipe.loss(net, task))

    def run(*arrays):
        net.train()
        net.clear_gradients()
        loss = compute(*arrays)
        loss.backward()
        # Paddle also lists running statistics as parameters, without a gradient
        held = {name: gradient(weight) for name, weight in recipe.stored(net).items()}
        return loss.detach(), {name: grad for name, grad in held.items() if grad is not None}

    return run


def program_gradients(recipe, net, task):
    """Return run(*inputs, y) -> (loss, {parameter: gradient}), computed as one Program."""
    compute, names = (
        recipe.loss(net, task),
        {weight.name: name for name, weight in recipe.stored(net).items()},
    )
    found = []  # names of the parameters that have a gradient

    def differentiate(*inputs):
        loss = compute(*inputs)
        pairs = fluid.backward.append_backward(loss, parameter_list=list(names))
        found[:] = [names[weight.name] for weight, _ in pairs]
        return [loss] + [gradient for _, gradient in pairs]

    run = program(net, differentiate)

    def run_named(*arrays):
        set_training(net, True)
        loss, *values = run(*arrays)
        return loss, dict(zip(found, values))

    return run_named


def inference_step(recipe, net, task):
    """Return step(*inputs) -> logits or features."""
    return make_inference_step(net, getattr(recipe, "MKLDNN", True))


def make_inference_step(net, mkldnn=True):
    """Return step(*inputs) -> net(*inputs) without gradients: with Paddle Inference; imperatively as shipped."""
    set_training(net, False)
    if mode != "dygraph":
        return fluid.dygraph.no_grad(compiled(net, net.__call__))
    predictors = []  # created at the first step, from its batch

    def step(*inputs):
        if not predictors:
            predictors.append(make_predictor(net, inputs, mkldnn))
        (predict,) = predictors
        for name, x in zip(predict.get_input_names(), inputs):
            predict.get_input_tensor(name).copy_from_cpu(x.numpy())
        predict.zero_copy_run()
        return predict.get_output_tensor(predict.get_output_names()[0]).copy_to_cpu()

    return step


def make_training_step(net, optimiser, loss, before_update=None):
    """Return step(*inputs, y) -> loss, which updates the parameters."""
    set_training(net, True)
    if mode == "program":
        return program_step(net, optimiser, loss, before_update)
    compute = compiled(net, loss)

    def step(*arrays):
        value = compute(*arrays)
        value.backward()
        if before_update is not None:
            before_update()
        optimiser.minimize(value)
        net.clear_gradients()
        return value.detach()

    return step


def program_step(net, optimiser, loss, before_update):
    """Return step(*inputs, y) -> loss, in which a Program also updates the parameters."""
    names = [parameter.name for parameter in net.parameters()]
    scope, updates = fluid.Scope(), []

    def minimise(*inputs):
        value = loss(*inputs)
        pairs = optimiser.backward(value, parameter_list=names)
        if before_update is None:
            optimiser.apply_gradients(pairs)
        else:
            updates.append(update_program(optimiser, pairs))
        return [value]

    run = program(net, minimise, scope)

    def step(*arrays):
        (value,) = run(*arrays)
        if before_update is not None:
            before_update()
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
    executor.run(update, scope=scope)


@switch_to_static_graph  # imperatively, Paddle refuses to create it
def recomputing(optimiser, kept):
    """Return an optimiser whose backward pass computes all but the Variables ``kept`` again. Only a Program can.

    The network has listed them in ``kept`` when the backward pass is built.
    """
    if mode != "program":
        return optimiser
    optimiser = fluid.optimizer.RecomputeOptimizer(optimiser)
    optimiser._set_checkpoints(kept)
    return optimiser


def adam_step(net, task, loss):
    """Return step(*inputs, y) -> loss, which updates the parameters by Adam."""
    optimiser = fluid.optimizer.AdamOptimizer(
        task.learning_rate,
        beta1=task.beta1,
        beta2=task.beta2,
        epsilon=task.epsilon,
        parameter_list=net.parameters(),
        lazy_mode=False,  # update every row of an embedding, as the Task's Adam does
    )
    count = itertools.count(1)

    def correct_epsilon():
        # Paddle adds epsilon before it corrects the second moment, the Task adds it after: so correct
        # epsilon by the same factor; without it the tenth loss of the GRU is 6e-4 off
        optimiser._epsilon = task.epsilon * (1 - task.beta2 ** next(count)) ** 0.5

    return make_training_step(net, optimiser, loss, correct_epsilon)


def outputs(net, names):
    """Return run(*inputs) -> {layer: output}: outputs of the layers ``names``, eagerly, images channels last."""
    layers = dict(net.named_sublayers())

    def run(*inputs):
        layer_outputs = {}

        def recording_hook(name):
            return lambda layer, inputs, output: layer_outputs.update({name: channels_last(output)})

        hooks = [layers[name].register_forward_post_hook(recording_hook(name)) for name in names]
        net.eval()
        fluid.dygraph.no_grad(net.__call__)(*inputs)
        for hook in hooks:
            hook.remove()
        return layer_outputs

    return run


def channels_last(output):
    return fluid.layers.transpose(output, (0, 2, 3, 1)) if len(output.shape) == 4 else output


def make_predictor(net, inputs, mkldnn):
    """Return a Paddle Inference predictor of the operations of net(*inputs), with or without MKL-DNN."""
    with fluid.dygraph.no_grad():
        _, traced = fluid.dygraph.TracedLayer.trace(net, list(inputs))
    with tempfile.TemporaryDirectory() as folder:
        traced.save_inference_model(folder)
        config = AnalysisConfig(folder)
        config.disable_gpu()
        config.disable_glog_info()
        config.switch_use_feed_fetch_ops(False)  # for zero_copy_run
        config.set_cpu_math_library_num_threads(threads)
        if mkldnn:
            config.enable_mkldnn()
            config.set_mkldnn_op(MKLDNN)
        return create_paddle_predictor(config)


def put(array):
    if array.dtype == "int32":  # labels and tokens: Paddle takes only int64, and labels as a column
        array = array.astype("int64").reshape(len(array), -1)
    return fluid.dygraph.to_variable(array)


def take(data, rows):
    return fluid.layers.gather(data, fluid.dygraph.to_variable(rows))


def wait(value):
    pass  # a call returns after its computation


def fetch(value):
    # outputs of Paddle Inference are NumPy arrays, those of an Executor LoDTensors
    return value.numpy() if hasattr(value, "numpy") else numpy.array(value)


def peak_memory():
    return None
