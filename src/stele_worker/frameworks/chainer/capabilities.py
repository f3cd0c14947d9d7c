"""Chainer: define-by-run, with Python's control flow and no compiler."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy

EAGER = "Chainer has no compiled mode: {}"


def scalar(value):
    return chainer.Variable(numpy.array(value, numpy.float32))


def make_tripling_layer():
    return L.Linear(1, 1, nobias=True, initialW=3.0)


def second_derivative():
    x = scalar(2.0)
    (grad,) = chainer.grad([x**3], [x], enable_double_backprop=True)
    return chainer.grad([grad], [x])[0].array


def gradient_penalty():
    w, x = scalar(2.0), scalar(1.5)
    (grad,) = chainer.grad([w * x**2], [x], enable_double_backprop=True)
    return chainer.grad([(F.absolute(grad) - 1) ** 2], [w])[0].array


class DoubleAndAddOne(chainer.LinkHook):
    def forward_preprocess(self, call):
        call.args[0].array *= 2

    def forward_postprocess(self, call):
        call.out.array += 1


def hooks():
    layer = make_tripling_layer()
    layer.add_hook(DoubleAndAddOne())
    return layer(chainer.Variable(numpy.array([[2.0]], numpy.float32))).array


def shared_parameter():
    first, second = make_tripling_layer(), L.Linear(1, 1, nobias=True)
    second.W = first.W
    y = second(first(numpy.array([[2.0]], numpy.float32)))
    first.W.cleargrad()
    y.backward()
    return first.W.grad


def predicted_weight():
    hyper = L.Linear(1, 1, nobias=True, initialW=2.0)
    weight = hyper(numpy.array([[3.0]], numpy.float32))
    y = F.linear(numpy.array([[5.0]], numpy.float32), weight)
    hyper.W.cleargrad()
    y.backward()
    return [y.array.item(), hyper.W.grad.item()]


def control_flow():
    raise NotImplementedError(EAGER.format("loops run in Python"))


def dynamic_batch():
    raise NotImplementedError(EAGER.format("any batch size works"))


def saved_model(folder):
    raise NotImplementedError(EAGER.format("only parameters are saved; the network is Python source"))
