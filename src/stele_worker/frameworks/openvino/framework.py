"""OpenVINO: a model of its operations, compiled for the CPU. Inference only."""

import os

os.environ.setdefault("CI", "true")  # read at import, which would otherwise report to Google Analytics

import numpy
import openvino
from openvino import opset13 as ops
from openvino import properties
from openvino.properties import hint

from stele_worker.frameworks import base

PRECISIONS = {"fp32": openvino.Type.f32, "bf16": openvino.Type.bf16}


class Framework(base.Framework):
    def __init__(self, name):
        super().__init__(name)
        # for every compilation, set by configure
        self.core, self.options = None, {}

    def configure(self, settings):
        # "autotune", "deterministic" and "seed" have no effect
        if settings["device"] != "cpu":
            reason = "OpenVINO {} supports CPUs and Intel devices, not {!r}: use device 'cpu'"
            raise RuntimeError(reason.format(openvino.__version__, settings["device"]))
        if settings["precision"] not in PRECISIONS:
            reason = "OpenVINO supports the precisions {}, not {!r}"
            raise RuntimeError(reason.format(" and ".join(PRECISIONS), settings["precision"]))
        self.core = openvino.Core()
        self.options[hint.performance_mode] = hint.PerformanceMode.LATENCY
        self.options[hint.inference_precision] = PRECISIONS[settings["precision"]]  # the default may be bf16
        self.options[properties.inference_num_threads] = settings["threads"]
        self.options[properties.num_streams] = 1

    def versions(self):
        return {"openvino": openvino.__version__}

    def flags(self):
        """Return the settings of a compiled model with one operation, because only a model can report them."""
        x = ops.parameter([1], numpy.float32)
        probe = self.core.compile_model(openvino.Model([ops.relu(x)], [x], "flags"), "CPU", self.options)
        return {
            "device": self.core.get_property("CPU", properties.device.full_name),
            "capabilities": self.core.get_property("CPU", properties.device.capabilities),
            "threads": probe.get_property(properties.inference_num_threads),
            "streams": probe.get_property(properties.num_streams),
            "pinning": probe.get_property(hint.enable_cpu_pinning),
            "performance_hint": str(probe.get_property(hint.performance_mode)),
            "execution_mode": str(probe.get_property(hint.execution_mode)),
            "precision": probe.get_property(hint.inference_precision).get_type_name(),
        }

    def put(self, array):
        return openvino.Tensor(array, shared_memory=True)

    def take(self, data, rows):
        return self.put(data.data[rows])

    def fetch(self, value):
        return numpy.array(value.data)
