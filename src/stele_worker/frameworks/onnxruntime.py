"""ONNX Runtime: a graph, as an exporter would write it, and a session that runs it. Inference only.

Arrays are OrtValues, which a run reads and returns without a copy.
"""

import functools
import os

# read at import, which would otherwise report to Microsoft
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 20  # PyTorch's default for exports
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"

options = None  # for every session, set by configure
device = "cpu"
providers = [CPU]


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings."""
    global options, device, providers
    device = settings["device"]
    if device == "cuda" and CUDA not in onnxruntime.get_available_providers():
        advice = "Install onnxruntime-gpu on a machine with a GPU, or use device 'cpu'."
        raise RuntimeError("onnxruntime {} found no CUDA device. {}".format(onnxruntime.__version__, advice))
    if settings["precision"] == "bf16":
        raise RuntimeError("The graphs for ONNX Runtime have no precision 'bf16': use precision 'fp32'")
    providers = [CPU]
    if device == "cuda":
        search = "EXHAUSTIVE" if settings["autotune"] else "DEFAULT"
        choices = {"use_tf32": int(settings["precision"] == "tf32"), "cudnn_conv_algo_search": search}
        providers = [(CUDA, choices), CPU]
    onnxruntime.set_seed(settings["seed"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings["threads"]
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.use_deterministic_compute = settings["deterministic"]


def versions():
    return {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__}


def flags():
    """Return the settings of a session with one node, because only a session can report them."""
    net = graph("flags", "x", TensorProto.FLOAT, (1,))
    probe = session(output(net, node(net, "Identity", "x"), (1,)))
    active = probe.get_session_options()
    return {
        "device": device,
        "providers": probe.get_providers(),
        "threads": active.intra_op_num_threads,
        "interop_threads": active.inter_op_num_threads,
        "execution_mode": active.execution_mode.name,
        "graph_optimization_level": active.graph_optimization_level.name,
        "deterministic": active.use_deterministic_compute,
        "memory_pattern": active.enable_mem_pattern,
        "opset": OPSET,
    }


def graph(name, x, kind, shape):
    """Return a graph with an input and without nodes. A dimension given as a name has any size."""
    return onnx.GraphProto(name=name, input=[helper.make_tensor_value_info(x, kind, shape)])


def node(net, operator, *inputs, outputs=1, **attributes):
    """Append a node to a graph; return the name of its last output. The outputs before it are omitted."""
    name = "{}.{}".format(operator, len(net.node))
    output_names = [""] * (outputs - 1) + [name]
    net.node.append(helper.make_node(operator, inputs, output_names, name=name, **attributes))
    return name


def output(net, name, shape):
    """Make the float32 value ``name`` the output of a graph; return the graph."""
    net.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    return net


def constant(net, name, array):
    """Add an array to a graph under ``name``, which nodes use as an input."""
    net.initializer.append(numpy_helper.from_array(numpy.ascontiguousarray(array), name))


def constants(net):
    """Return the arrays that ``constant`` added, by name."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in net.initializer}


def session(net):
    imports = [helper.make_opsetid("", OPSET)]
    # the format version that belongs to the opset: onnx's default may be newer than onnxruntime can read
    model = helper.make_model(net, opset_imports=imports, ir_version=helper.find_min_ir_version_for(imports))
    onnx.checker.check_model(model)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)


def make_runner(net):
    """Return run(x) -> output. The first call creates the session, which optimises the graph.

    The batch size is not fixed: fixing it made nothing faster, and neither did an IOBinding with these OrtValues.
    """
    sessions = []

    def run(x):
        if not sessions:
            sessions.append(session(net))
        if device == "cuda":
            return run_bound(sessions[0], net.output[0].name, {net.input[0].name: x})
        return sessions[0].run_with_ort_values([net.output[0].name], {net.input[0].name: x})[0]

    return run


def run_bound(session, output, inputs):
    """Return an output, which stays on the device: a run without a binding copies it to the host."""
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output(output, device)
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    return binding.get_outputs()[0]


def inference_step(recipe, net, task):
    """Return step(x) -> logits or features."""
    return make_runner(net)


def put(array):
    return onnxruntime.OrtValue.ortvalue_from_numpy(array, device, 0)


def take(data, rows):
    session = gathering(data.element_type(), len(data.shape()))
    return run_bound(session, "taken", {"data": data, "rows": put(rows)})


@functools.lru_cache(maxsize=None)
def gathering(kind, axes):
    """Return a session that gathers rows on the device, of arrays with an element type and a number of axes."""
    net = graph("take", "data", kind, [None] * axes)
    net.input.append(helper.make_tensor_value_info("rows", TensorProto.INT64, [None]))
    net.output.append(helper.make_tensor_value_info("taken", kind, [None] * axes))
    net.node.append(helper.make_node("Gather", ["data", "rows"], ["taken"]))
    return session(net)


def wait(value):
    pass  # a run returns after its computation


def fetch(value):
    # a graph's constants are NumPy arrays
    return value if isinstance(value, numpy.ndarray) else value.numpy()


def peak_memory():
    return None
