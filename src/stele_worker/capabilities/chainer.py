"""Chainer: define-by-run, so control flow is Python's, and there is nothing that compiles."""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy

EAGER = "Chainer has no compiled mode: {}"


def scalar(value):
    return chainer.Variable(numpy.array(value, numpy.float32))


def tripling():
    return L.Linear(1, 1, nobias=True, initialW=3.0)


def second_derivative():
    x = scalar(2.0)
    (slope,) = chainer.grad([x**3], [x], enable_double_backprop=True)
    return chainer.grad([slope], [x])[0].array


def gradient_penalty():
    w, x = scalar(2.0), scalar(1.5)
    (slope,) = chainer.grad([w * x**2], [x], enable_double_backprop=True)
    return chainer.grad([(F.absolute(slope) - 1) ** 2], [w])[0].array


class Doubling(chainer.LinkHook):
    def forward_preprocess(self, call):
        call.args[0].array *= 2

    def forward_postprocess(self, call):
        call.out.array += 1


def hooks():
    layer = tripling()
    layer.add_hook(Doubling())
    return layer(chainer.Variable(numpy.array([[2.0]], numpy.float32))).array


def shared_parameter():
    first, second = tripling(), L.Linear(1, 1, nobias=True)
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
    raise NotImplementedError(EAGER.format("its loops are Python's"))


def dynamic_batch():
    raise NotImplementedError(EAGER.format("any batch is as good as another"))


def saved_model(folder):
    raise NotImplementedError(EAGER.format("it saves parameters, and the network is its source"))
