"""OpenVINO: a model of its operations, compiled for the CPU. Inference only."""

import os

os.environ.setdefault("CI", "true")  # read at import, which would otherwise report to Google Analytics

import numpy
import openvino
from openvino import opset13 as ops
from openvino import properties
from openvino.properties import hint

PRECISIONS = {"fp32": openvino.Type.f32, "bf16": openvino.Type.bf16}

core, options = None, {}  # for every compilation, set by configure


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings.

    autotune, deterministic and seed have no effect.
    """
    global core
    if settings["device"] != "cpu":
        reason = "OpenVINO {} supports CPUs and Intel devices, not {!r}: use device 'cpu'"
        raise RuntimeError(reason.format(openvino.__version__, settings["device"]))
    if settings["precision"] not in PRECISIONS:
        reason = "OpenVINO supports the precisions {}, not {!r}"
        raise RuntimeError(reason.format(" and ".join(PRECISIONS), settings["precision"]))
    core = openvino.Core()
    options[hint.performance_mode] = hint.PerformanceMode.LATENCY
    options[hint.inference_precision] = PRECISIONS[settings["precision"]]  # the default may be bf16
    options[properties.inference_num_threads] = settings["threads"]
    options[properties.num_streams] = 1


def versions():
    return {"openvino": openvino.__version__}


def flags():
    """Return the settings of a compiled model with one operation, because only a model can report them."""
    x = ops.parameter([1], numpy.float32)
    probe = core.compile_model(openvino.Model([ops.relu(x)], [x], "flags"), "CPU", options)
    return {
        "device": core.get_property("CPU", properties.device.full_name),
        "capabilities": core.get_property("CPU", properties.device.capabilities),
        "threads": probe.get_property(properties.inference_num_threads),
        "streams": probe.get_property(properties.num_streams),
        "pinning": probe.get_property(hint.enable_cpu_pinning),
        "performance_hint": str(probe.get_property(hint.performance_mode)),
        "execution_mode": str(probe.get_property(hint.execution_mode)),
        "precision": probe.get_property(hint.inference_precision).get_type_name(),
    }


def make_runner(model):
    """Return run(x) -> output. The first call compiles for its batch size; a free batch size cost 1 to 6 %."""
    requests = {}

    def run(x):
        shape = tuple(x.shape)
        if shape not in requests:
            model.reshape(list(shape))
            requests[shape] = core.compile_model(model, "CPU", options).create_infer_request()
        request = requests[shape]
        request.set_input_tensor(x)
        request.infer()
        return request.get_output_tensor()  # the next call overwrites it

    return run


def inference_step(recipe, net, task):
    """Return step(x) -> logits or features."""
    x = recipe.inputs(task)
    return make_runner(openvino.Model([recipe.predict(net, task, x)], [x], task.name))


def put(array):
    return openvino.Tensor(array, shared_memory=True)


def take(data, rows):
    return put(data.data[rows])


def wait(value):
    pass  # a call returns after its computation


def fetch(value):
    return numpy.array(value.data)


def peak_memory():
    return None
