"""ONNX Runtime around any Task: a graph, as an exporter would leave it, and a session that runs it.

It infers and does not train. Arrays lie in OrtValues, which a run reads and returns without a copy.
"""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read at the import, which would report to Microsoft

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 20  # what PyTorch exports to unless told otherwise
CPU = "CPUExecutionProvider"

options = None  # of every session, set by configure


def configure(settings):
    """See ``stele_worker.frameworks``; settings as in ``stele_worker.protocol``."""
    global options
    if settings["device"] != "cpu":
        reason = (
            "onnxruntime {} is the package for the CPU, onnxruntime-gpu another: ask for device cpu, not {!r}"
        )
        raise RuntimeError(reason.format(onnxruntime.__version__, settings["device"]))
    if settings["precision"] != "fp32":
        reason = "ONNX Runtime computes in the types of its graph, here 'fp32', not {!r}: ask for 'fp32'"
        raise RuntimeError(reason.format(settings["precision"]))
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
    """Of a session of one node: a session alone says what it runs on."""
    net = graph("flags", "x", TensorProto.FLOAT, (1,))
    probe = session(output(net, node(net, "Identity", "x"), (1,)))
    read = probe.get_session_options()
    return {
        "device": "cpu",
        "providers": probe.get_providers(),
        "threads": read.intra_op_num_threads,
        "interop_threads": read.inter_op_num_threads,
        "execution_mode": read.execution_mode.name,
        "graph_optimization_level": read.graph_optimization_level.name,
        "deterministic": read.use_deterministic_compute,
        "memory_pattern": read.enable_mem_pattern,
        "opset": OPSET,
    }


def graph(name, x, kind, shape):
    """A graph that has an input and no node yet; a dimension that is a name is free."""
    return onnx.GraphProto(name=name, input=[helper.make_tensor_value_info(x, kind, shape)])


def node(net, operator, *inputs, outputs=1, **attributes):
    """Append a node to a graph; return the name of the last of its outputs. Those before it are left out."""
    name = "{}.{}".format(operator, len(net.node))
    made = [""] * (outputs - 1) + [name]
    net.node.append(helper.make_node(operator, inputs, made, name=name, **attributes))
    return name


def output(net, name, shape):
    """The graph, with the value ``name``, float32, as its output."""
    net.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    return net


def constant(net, name, array):
    """Put an array into a graph under the name by which nodes ask for it."""
    net.initializer.append(numpy_helper.from_array(numpy.ascontiguousarray(array), name))


def constants(net):
    """What ``constant`` put there."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in net.initializer}


def session(net):
    imports = [helper.make_opsetid("", OPSET)]
    # the file format's version is the opset's: onnx writes by default a newer one than onnxruntime may read
    model = helper.make_model(net, opset_imports=imports, ir_version=helper.find_min_ir_version_for(imports))
    onnx.checker.check_model(model)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=[CPU])


def compiled(net):
    """run(x) -> output, whose first call makes the session: it optimises the graph, as others compile theirs.

    The batch stays free: to fix it gained nothing, nor did an IOBinding over these OrtValues.
    """
    made = []

    def run(x):
        if not made:
            made.append(session(net))
        return made[0].run_with_ort_values([net.output[0].name], {net.input[0].name: x})[0]

    return run


def put(array):
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def take(data, rows):
    return put(data.numpy()[rows])


def wait(value):
    pass  # a run returns when it has been computed


def fetch(value):
    return value if isinstance(value, numpy.ndarray) else value.numpy()  # a graph's constants are NumPy's


def peak_memory():
    return None
