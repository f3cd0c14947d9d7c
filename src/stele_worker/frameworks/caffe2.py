"""Caffe2 on the CPU: blobs in the only workspace of the process, and nets that run there."""

import ctypes
import itertools

from caffe2.proto import caffe2_pb2
from caffe2.python import brew, core, recurrent, workspace
from caffe2.python.model_helper import ModelHelper

CPU, ONEDNN = core.DeviceOption(caffe2_pb2.CPU), core.DeviceOption(caffe2_pb2.IDEEP)

MODES = ("netdef", "as-shipped")
device = CPU  # for layers that have operators for both; Caffe2 calls oneDNN IDEEP
threads = 1
blob_numbers = itertools.count()  # put() numbers its blobs


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings.

    On a CPU an operator has one algorithm, and the number of threads determines its order of summation. So
    autotune and deterministic have no effect. The seed is an argument of each operator that draws numbers.
    """
    global device, threads
    release = versions()["torch"]
    if settings["device"] != "cpu":
        reason = "Caffe2 of torch {} is supported on device 'cpu' only, not {!r}: use device 'cpu'"
        raise RuntimeError(reason.format(release, settings["device"]))
    if settings["precision"] != "fp32":
        reason = "Caffe2 of torch {} supports precision 'fp32' only on a CPU, not {!r}: use precision 'fp32'"
        raise RuntimeError(reason.format(release, settings["precision"]))
    device = ONEDNN if settings["mode"] != "as-shipped" else CPU
    threads = settings["threads"]
    # by default MKL counts cores, not processors
    pools = ("caffe2_omp_num_threads", "caffe2_mkl_num_threads")
    workspace.GlobalInit(["caffe2"] + ["--{}={}".format(pool, threads) for pool in pools])


def versions():
    build = workspace.C.get_build_options()
    return {"torch": build["TORCH_VERSION"], "blas": build["BLAS_INFO"]}


def flags():
    libraries = ctypes.CDLL(None)  # Caffe2 has no API for its threads, so ask its libraries
    return {
        "device": "cpu",
        "threads": libraries.omp_get_max_threads(),
        "mkl_threads": libraries.MKL_Get_Max_Threads(),
        "onednn": device is ONEDNN and workspace.C.use_mkldnn,
    }


def empty_model(name, device, parameters=()):
    """Return a model without operators, for parameters that are already in the workspace."""
    model = ModelHelper(name=name, init_params=False, arg_scope={"order": "NCHW", "use_cudnn": False})
    for blob in parameters:
        model.param_init_net.AddExternalInput(blob)  # otherwise an optimiser finds it undefined
    for net in (model.net, model.param_init_net):
        net.Proto().device_option.CopyFrom(device)
    return model


def make_runner(model):
    """Return run(x=blob, ...), which runs the model's net with that blob as "x". New blobs get a new net."""
    nets = {}

    def run(**blobs):
        key = tuple(blobs.values())
        if key not in nets:
            nets[key] = model.net.Clone(model.name, blob_remap=blobs)
            workspace.CreateNet(nets[key])
        workspace.RunNet(nets[key])

    return run


def dropout(model, x, shape, rate, seed):
    """Apply dropout to "x"; its samples have ``shape``.

    oneDNN's operator takes no seed, and reads the padded blocks of channels of its layers as plain arrays. So
    with oneDNN the CPU's operator makes a mask, with one row per label in "y".
    """
    seeded_cpu = core.DeviceOption(caffe2_pb2.CPU, random_seed=seed)
    if device is CPU:
        return brew.dropout(model, x, x + "_drop", ratio=rate, is_test=False, device_option=seeded_cpu)
    ones = model.net.ConstantFill("y", x + "_ones", extra_shape=shape, value=1.0, device_option=CPU)
    mask = brew.dropout(model, ones, x + "_mask", ratio=rate, is_test=False, device_option=seeded_cpu)
    mask = model.net.StopGradient(mask, mask, device_option=CPU)
    return model.net.Mul([x, mask], x + "_drop")


def with_plain_gradients(model):
    """Return the model with gradients in the plain layout, because oneDNN's MomentumSGDUpdate expects it."""
    for parameter in model.GetOptimizationParamInfo():
        if device is ONEDNN and len(parameter.shape) > 1:
            parameter.grad = model.net.Flatten(parameter.grad, parameter.grad + "_plain")
    return model


def with_threads(model):
    """Return the model with its recurrences on the requested number of threads; their default is four."""
    for operator in model.net.Proto().op:
        if operator.type.startswith("RecurrentNetwork"):
            recurrent.set_rnn_executor_config(operator, num_threads=threads)
    return model


def put(array):
    blob = core.BlobReference("array{}".format(next(blob_numbers)))
    workspace.FeedBlob(blob, array, device)  # Caffe2 always puts integers on the CPU
    return blob


def take(data, rows):
    workspace.FeedBlob("rows", rows, CPU)
    batch = data + "_batch"  # the next batch overwrites it
    workspace.RunOperatorOnce(core.CreateOperator("Gather", [data, "rows"], [batch], device_option=device))
    return batch


def wait(value):
    pass  # a net returns after it has run


def fetch(value):
    # steps return arrays, because the next step overwrites their blobs
    return workspace.FetchBlob(value) if isinstance(value, core.BlobReference) else value


def peak_memory():
    return None
