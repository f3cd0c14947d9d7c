"""PaddlePaddle 3 around any Task."""

import os
import tempfile

import paddle
from paddle import inference

ONEDNN = "onednn" if hasattr(inference.Config, "enable_onednn") else "mkldnn"  # its name until Paddle 3.1
device = "cpu"
threads = 1
tuned = True


def configure(settings):
    """See ``stele_worker.frameworks``; settings as in ``stele_worker.protocol``."""
    global device, threads, tuned
    device, threads, tuned = settings["device"], settings["threads"], settings["tuned"]
    if settings["precision"] != "fp32":
        raise RuntimeError("The recipes for Paddle compute in fp32, not in {}".format(settings["precision"]))
    if device == "cuda" and not paddle.device.is_compiled_with_cuda():
        advice = "Install paddlepaddle-gpu beside a GPU, or ask for device cpu."
        raise RuntimeError("Paddle {} was built without CUDA. {}".format(paddle.__version__, advice))
    paddle.set_device("gpu" if device == "cuda" else "cpu")
    paddle.set_flags({"FLAGS_paddle_num_threads": threads})
    if device == "cuda":
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # for CUDA's libraries, when first used: Paddle has no flag
        paddle.set_flags({"FLAGS_cudnn_exhaustive_search": settings["autotune"]})
        paddle.set_flags({"FLAGS_cudnn_deterministic": settings["deterministic"]})
    paddle.seed(settings["seed"])


def versions():
    cuda = device == "cuda"
    return {
        "paddle": paddle.version.full_version,
        "cuda": paddle.version.cuda() if cuda else None,
        "cudnn": paddle.version.cudnn() if cuda else None,
    }


def flags():
    names = ["FLAGS_paddle_num_threads", "FLAGS_use_" + ONEDNN]  # of the second, eager knows nothing
    if device == "cuda":
        names += ["FLAGS_cudnn_exhaustive_search", "FLAGS_cudnn_deterministic"]
    read = {name[len("FLAGS_") :]: value for name, value in paddle.get_flags(names).items()}
    openmp = int(os.environ["OMP_NUM_THREADS"])  # what the kernels use; Paddle sets it to 1 where nobody did
    return dict(read, device=paddle.get_device(), threads=openmp, inference_onednn=tuned and device == "cpu")


def inferred(net):
    """step(x) -> net(x) without gradients: as Paddle recommends for it, or eagerly where left as shipped."""
    net.eval()
    if not tuned:
        return paddle.no_grad()(net.__call__)
    predictors = []  # made at the first step, for its kind of batch

    def step(x):
        if not predictors:
            predictors.append(predictor(net, x))
        return predictors[0].run([x])[0]

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
        paddle.no_grad()(net.__call__)(x)
        for hook in hooks:
            hook.remove()
        return seen

    return run


def channels_last(output):
    return output.transpose((0, 2, 3, 1)) if output.ndim == 4 else output


def predictor(net, x):
    """Paddle Inference of ``net`` for batches such as ``x``, in oneDNN where that has the operation."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net")
        paddle.jit.save(net, path, input_spec=[paddle.static.InputSpec.from_tensor(x)])
        config = inference.Config(path + ".json", path + ".pdiparams")
        config.disable_glog_info()
        config.set_cpu_math_library_num_threads(threads)
        if device == "cuda":
            config.enable_use_gpu(100, 0)  # MB to begin with, and which GPU
        else:
            getattr(config, "enable_" + ONEDNN)()
        return inference.create_predictor(config)


def put(array):
    if array.dtype == "int32":  # labels and tokens: what paddle.nn documents is int64
        array = array.astype("int64")
    return paddle.to_tensor(array)


def take(data, rows):
    return paddle.gather(data, paddle.to_tensor(rows))


def wait(value):
    if device == "cuda":
        paddle.device.synchronize()  # on a CPU a call returns when it has been computed


def fetch(value):
    return value.astype("float32").numpy()


def peak_memory():
    return paddle.device.max_memory_allocated() if device == "cuda" else None
