"""ONNX Runtime: a graph, as an exporter would write it, and a session that runs it. Inference only.

Arrays are OrtValues, which a run reads and returns without a copy.
"""

import os

# read at import, which would otherwise report to Microsoft
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

from stele_worker.frameworks import base
from stele_worker.frameworks.onnxruntime.graphs import OPSET, graph, node, output

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


class Framework(base.Framework):
    def __init__(self, name):
        super().__init__(name)
        self.options = None  # for every session, set by configure
        self.device = "cpu"
        self.providers = [CPU]
        self.gatherers = {}  # (element type, number of axes) -> session that gathers rows of such arrays

    def configure(self, settings):
        self.device = settings["device"]
        if self.device == "cuda" and CUDA not in onnxruntime.get_available_providers():
            advice = "Install onnxruntime-gpu on a machine with a GPU, or use device 'cpu'."
            raise RuntimeError("onnxruntime {} found no CUDA device. {}".format(onnxruntime.__version__, advice))
        if settings["precision"] == "bf16":
            raise RuntimeError("The graphs for ONNX Runtime have no precision 'bf16': use precision 'fp32'")
        self.providers = [CPU]
        if self.device == "cuda":
            search = "EXHAUSTIVE" if settings["autotune"] else "DEFAULT"
            choices = {"use_tf32": int(settings["precision"] == "tf32"), "cudnn_conv_algo_search": search}
            self.providers = [(CUDA, choices), CPU]
        onnxruntime.set_seed(settings["seed"])
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = settings["threads"]
        self.options.inter_op_num_threads = 1
        self.options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        self.options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.options.use_deterministic_compute = settings["deterministic"]

    def versions(self):
        return {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__}

    def flags(self):
        """Return the settings of a session with one node, because only a session can report them."""
        net = graph("flags", "x", TensorProto.FLOAT, (1,))
        probe = self.session(output(net, node(net, "Identity", "x"), (1,)))
        active = probe.get_session_options()
        return {
            "device": self.device,
            "providers": probe.get_providers(),
            "threads": active.intra_op_num_threads,
            "interop_threads": active.inter_op_num_threads,
            "execution_mode": active.execution_mode.name,
            "graph_optimization_level": active.graph_optimization_level.name,
            "deterministic": active.use_deterministic_compute,
            "memory_pattern": active.enable_mem_pattern,
            "opset": OPSET,
        }

    def session(self, net):
        imports = [helper.make_opsetid("", OPSET)]
        # the format version that belongs to the opset: onnx's default may be newer than onnxruntime can read
        model = helper.make_model(net, opset_imports=imports, ir_version=helper.find_min_ir_version_for(imports))
        onnx.checker.check_model(model)
        return onnxruntime.InferenceSession(model.SerializeToString(), self.options, providers=self.providers)

    def run_bound(self, session, output, inputs):
        """Return an output, which stays on the device: a run without a binding copies it to the host."""
        binding = session.io_binding()
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, value)
        binding.bind_output(output, self.device)
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return binding.get_outputs()[0]

    def put(self, array):
        return onnxruntime.OrtValue.ortvalue_from_numpy(array, self.device, 0)

    def take(self, data, rows):
        facts = data.element_type(), len(data.shape())
        if facts not in self.gatherers:
            self.gatherers[facts] = self.gathering(*facts)
        return self.run_bound(self.gatherers[facts], "taken", {"data": data, "rows": self.put(rows)})

    def gathering(self, kind, axes):
        """Return a session that gathers rows on the device, of arrays with an element type and a number of axes."""
        net = graph("take", "data", kind, [None] * axes)
        net.input.append(helper.make_tensor_value_info("rows", TensorProto.INT64, [None]))
        net.output.append(helper.make_tensor_value_info("taken", kind, [None] * axes))
        net.node.append(helper.make_node("Gather", ["data", "rows"], ["taken"]))
        return self.session(net)

    def fetch(self, value):
        # a graph's constants are NumPy arrays
        return value if isinstance(value, numpy.ndarray) else value.numpy()
