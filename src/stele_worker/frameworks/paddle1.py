"""PaddlePaddle 1, imperative (``fluid.dygraph``)."""

import itertools
import os
import tempfile

import numpy
import paddle
import paddle.fluid as fluid
from paddle.fluid.core import AnalysisConfig, create_paddle_predictor

# operations of MKL-DNN in inference; its matmul is wrong if a network has several of one shape
MKLDNN = {"conv2d", "batch_norm", "pool2d", "relu", "elementwise_add"}

MODES = ("dygraph", "as-shipped")
threads = 1
mode = "dygraph"
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
        active, device="cpu", threads=openmp, inference_mkldnn=sorted(MKLDNN) if mode == "dygraph" else []
    )


def drop(x, rate, training):
    """Return x with numbers dropped out, and the others scaled up, in training."""
    seed = seeds.randint(1, 2**31) if training else None  # one seed gives one mask
    scaled = "upscale_in_train"
    return fluid.layers.dropout(x, rate, is_test=not training, seed=seed, dropout_implementation=scaled)


def gradient(parameter):
    """Return the gradient of a parameter without a copy; ``parameter.gradient()`` copies it to numpy."""
    return parameter._grad_ivar()


def gradients(recipe, net, task):
    """Return run(*inputs, y) -> (loss, {parameter: gradient})."""
    compute = recipe.loss(net, task)

    def run(*arrays):
        net.train()
        net.clear_gradients()
        loss = compute(*arrays)
        loss.backward()
        # Paddle also lists running statistics as parameters, without a gradient
        held = {name: gradient(weight) for name, weight in recipe.stored(net).items()}
        return loss.detach(), {name: grad for name, grad in held.items() if grad is not None}

    return run


def inference_step(recipe, net, task):
    """Return step(*inputs) -> logits or features."""
    return make_inference_step(net, getattr(recipe, "MKLDNN", True))


def make_inference_step(net, mkldnn=True):
    """Return step(*inputs) -> net(*inputs) without gradients: with Paddle Inference; imperatively as shipped."""
    net.eval()
    if mode == "as-shipped":
        return fluid.dygraph.no_grad(net.__call__)
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
    net.train()

    def step(*arrays):
        value = loss(*arrays)
        value.backward()
        if before_update is not None:
            before_update()
        optimiser.minimize(value)
        net.clear_gradients()
        return value.detach()

    return step


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
    # outputs of Paddle Inference are NumPy arrays
    return value if isinstance(value, numpy.ndarray) else value.numpy()


def peak_memory():
    return None
