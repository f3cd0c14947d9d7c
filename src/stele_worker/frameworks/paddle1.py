"""PaddlePaddle 1 around any Task, imperative (``fluid.dygraph``)."""

import os
import tempfile

import numpy
import paddle
import paddle.fluid as fluid
from paddle.fluid.core import AnalysisConfig, create_paddle_predictor

# what MKL-DNN computes in inference; its matmul is wrong where a network has several of one shape
MKLDNN = {"conv2d", "batch_norm", "pool2d", "relu", "elementwise_add"}

threads = 1
tuned = True


def configure(settings):
    """See ``stele_worker.frameworks``; settings as in ``stele_worker.protocol``."""
    global threads, tuned
    threads, tuned = settings["threads"], settings["tuned"]
    if settings["device"] != "cpu" or settings["precision"] != "fp32":
        sentence = "The recipes for Paddle {} compute on a CPU in fp32, not on {device} in {precision}"
        raise RuntimeError(sentence.format(paddle.__version__, **settings))
    fluid.set_flags({"FLAGS_paddle_num_threads": threads})
    fluid.set_flags({"FLAGS_cpu_deterministic": settings["deterministic"]})
    # no seed: Paddle's own, of a program, has dropout draw the same mask at every step
    fluid.enable_imperative(fluid.CPUPlace())


def versions():
    return {"paddle": paddle.version.full_version}


def flags():
    names = ["FLAGS_paddle_num_threads", "FLAGS_cpu_deterministic"]
    read = {name[len("FLAGS_") :]: value for name, value in fluid.get_flags(names).items()}
    openmp = int(os.environ["OMP_NUM_THREADS"])  # what the kernels use; Paddle sets it to 1 where nobody did
    return dict(read, device="cpu", threads=openmp, inference_mkldnn=sorted(MKLDNN) if tuned else [])


def gradient(parameter):
    """Of a parameter, after backward, where it lies; ``parameter.gradient()`` would copy it into numpy."""
    return parameter._grad_ivar()


def inferred(net, mkldnn=True):
    """step(x) -> net(x) without gradients: as Paddle recommends for it, or imperatively where left as shipped."""
    net.eval()
    if not tuned:
        return fluid.dygraph.no_grad(net.__call__)
    predictors = []  # made at the first step, from its batch

    def step(x):
        if not predictors:
            predictors.append(predictor(net, x, mkldnn))
        (predict,) = predictors
        predict.get_input_tensor(predict.get_input_names()[0]).copy_from_cpu(x.numpy())
        predict.zero_copy_run()
        return predict.get_output_tensor(predict.get_output_names()[0]).copy_to_cpu()

    return step


def outputs(net, names):
    """run(x) -> {layer: output} of the layers ``names``, eagerly, images channels last."""
    layers = dict(net.named_sublayers())

    def run(x):
        seen = {}

        def recorded(name):
            return lambda layer, given, output: seen.update({name: channels_last(output)})

        hooks = [layers[name].register_forward_post_hook(recorded(name)) for name in names]
        net.eval()
        fluid.dygraph.no_grad(net.__call__)(x)
        for hook in hooks:
            hook.remove()
        return seen

    return run


def channels_last(output):
    return fluid.layers.transpose(output, (0, 2, 3, 1)) if len(output.shape) == 4 else output


def predictor(net, x, mkldnn):
    """Paddle Inference of the operations that ``net`` carries out for ``x``, with MKL-DNN or without."""
    with fluid.dygraph.no_grad():
        _, traced = fluid.dygraph.TracedLayer.trace(net, [x])
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
    pass  # a call returns when it has been computed


def fetch(value):
    return value if isinstance(value, numpy.ndarray) else value.numpy()  # Paddle Inference's lie on the host


def peak_memory():
    return None
