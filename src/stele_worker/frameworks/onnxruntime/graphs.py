"""Graphs of ONNX: their nodes, constants and outputs."""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20  # PyTorch's default for exports


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
