"""Caffe2 around any Task, on the CPU: blobs in the process's one workspace, and nets that run there."""

import ctypes
import itertools

from caffe2.proto import caffe2_pb2
from caffe2.python import brew, core, recurrent, workspace
from caffe2.python.model_helper import ModelHelper

CPU, ONEDNN = core.DeviceOption(caffe2_pb2.CPU), core.DeviceOption(caffe2_pb2.IDEEP)

device = CPU  # of layers that have operators of both; IDEEP is what Caffe2 calls oneDNN
threads = 1
numbers = itertools.count()  # of the arrays that were put


def configure(settings):
    """See ``stele_worker.frameworks``; settings as in ``stele_worker.protocol``.

    On a CPU an operator has one algorithm, whose order of summation follows from the number of threads:
    autotune and deterministic have nothing to set. A seed is an argument of the operator that draws.
    """
    global device, threads
    release = versions()["torch"]
    if settings["device"] != "cpu":
        reason = "Caffe2 of torch {} runs here on device 'cpu' only, not {!r}: ask for 'cpu'"
        raise RuntimeError(reason.format(release, settings["device"]))
    if settings["precision"] != "fp32":
        reason = "Caffe2 of torch {} has precision 'fp32' only on a CPU, not {!r}: ask for 'fp32'"
        raise RuntimeError(reason.format(release, settings["precision"]))
    device = ONEDNN if settings["tuned"] else CPU
    threads = settings["threads"]
    pools = ("caffe2_omp_num_threads", "caffe2_mkl_num_threads")  # MKL by itself counts cores, not processors
    workspace.GlobalInit(["caffe2"] + ["--{}={}".format(pool, threads) for pool in pools])


def versions():
    build = workspace.C.get_build_options()
    return {"torch": build["TORCH_VERSION"], "blas": build["BLAS_INFO"]}


def flags():
    libraries = ctypes.CDLL(None)  # Caffe2 cannot say how many threads it has; what it loaded can
    return {
        "device": "cpu",
        "threads": libraries.omp_get_max_threads(),
        "mkl_threads": libraries.MKL_Get_Max_Threads(),
        "onednn": device is ONEDNN and workspace.C.use_mkldnn,
    }


def empty_model(name, device, parameters=()):
    """A model to be filled with operators on parameters that lie in the workspace already."""
    model = ModelHelper(name=name, init_params=False, arg_scope={"order": "NCHW", "use_cudnn": False})
    for blob in parameters:
        model.param_init_net.AddExternalInput(blob)  # or an optimiser would find it undefined
    for net in (model.net, model.param_init_net):
        net.Proto().device_option.CopyFrom(device)
    return model


def runner(model):
    """run(x=blob, ...) runs the model's net on that blob as its "x", for new blobs on a new net."""
    nets = {}

    def run(**blobs):
        key = tuple(blobs.values())
        if key not in nets:
            nets[key] = model.net.Clone(model.name, blob_remap=blobs)
            workspace.CreateNet(nets[key])
        workspace.RunNet(nets[key])

    return run


def dropout(model, x, shape, rate, seed):
    """Dropout of "x", whose samples have ``shape``.

    oneDNN's takes no seed, and takes the padded blocks of channels that its layers keep for plain arrays.
    So there the CPU's makes a mask, with as many rows as there are labels, "y".
    """
    drawn = core.DeviceOption(caffe2_pb2.CPU, random_seed=seed)
    if device is CPU:
        return brew.dropout(model, x, x + "_drop", ratio=rate, is_test=False, device_option=drawn)
    ones = model.net.ConstantFill("y", x + "_ones", extra_shape=shape, value=1.0, device_option=CPU)
    mask = brew.dropout(model, ones, x + "_mask", ratio=rate, is_test=False, device_option=drawn)
    mask = model.net.StopGradient(mask, mask, device_option=CPU)
    return model.net.Mul([x, mask], x + "_drop")


def with_plain_gradients(model):
    """The model, its gradients unblocked: oneDNN's MomentumSGDUpdate takes any array for a plain one."""
    for parameter in model.GetOptimizationParamInfo():
        if device is ONEDNN and len(parameter.shape) > 1:
            parameter.grad = model.net.Flatten(parameter.grad, parameter.grad + "_plain")
    return model


def with_threads(model):
    """The model, its recurrences on as many threads as were asked for; by themselves they take four."""
    for operator in model.net.Proto().op:
        if operator.type.startswith("RecurrentNetwork"):
            recurrent.set_rnn_executor_config(operator, num_threads=threads)
    return model


def put(array):
    blob = core.BlobReference("array{}".format(next(numbers)))
    workspace.FeedBlob(blob, array, device)  # of integers Caffe2 makes a tensor of the CPU in any case
    return blob


def take(data, rows):
    workspace.FeedBlob("rows", rows, CPU)
    batch = data + "_batch"  # the next batch takes its place
    workspace.RunOperatorOnce(core.CreateOperator("Gather", [data, "rows"], [batch], device_option=device))
    return batch


def wait(value):
    pass  # a net returns when it has run


def fetch(value):
    # steps return arrays, for their blobs are overwritten by the next step
    return workspace.FetchBlob(value) if isinstance(value, core.BlobReference) else value


def peak_memory():
    return None
