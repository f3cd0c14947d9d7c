"""PaddlePaddle 3: imperative, paddle.jit.to_static, paddle.jit.save."""

import os

import paddle
from paddle import nn


def make_tripling_layer():
    layer = nn.Linear(1, 1, bias_attr=False)
    layer.weight.set_value(paddle.to_tensor([[3.0]]))
    return layer


def leaf(value):
    return paddle.to_tensor(value, stop_gradient=False)


def second_derivative():
    x = leaf(2.0)
    (grad,) = paddle.grad(x**3, x, create_graph=True)
    return paddle.grad(grad, x)[0]


def gradient_penalty():
    w, x = leaf(2.0), leaf(1.5)
    (grad,) = paddle.grad(w * x**2, x, create_graph=True)
    ((grad.abs() - 1) ** 2).backward()
    return w.grad


def hooks():
    layer = make_tripling_layer()
    layer.register_forward_pre_hook(lambda layer, inputs: (2 * inputs[0],))
    layer.register_forward_post_hook(lambda layer, inputs, output: output + 1)
    return layer(paddle.to_tensor([2.0])).numpy()


def shared_parameter():
    first, second = make_tripling_layer(), nn.Linear(1, 1, bias_attr=False)
    second.weight = first.weight
    nn.Sequential(first, second)(paddle.to_tensor([2.0])).backward()
    return first.weight.grad


def predicted_weight():
    hyper = nn.Linear(1, 1, bias_attr=False)
    hyper.weight.set_value(paddle.to_tensor([[2.0]]))
    weight = hyper(paddle.to_tensor([[3.0]]))
    y = nn.functional.linear(paddle.to_tensor([[5.0]]), weight)
    y.backward()
    return y.item(), hyper.weight.grad.item()


def control_flow():
    @paddle.jit.to_static(full_graph=True, backend=None)
    def halvings(x):
        count = paddle.zeros([], "int64")
        while x > 1:  # to_static turns this into an operation
            x, count = x / 2, count + 1
        return count

    return [float(halvings(paddle.to_tensor(value))) for value in (100.0, 3.0)]


def dynamic_batch():
    spec = [paddle.static.InputSpec([None, 1], "float32")]
    run = paddle.jit.to_static(make_tripling_layer(), input_spec=spec, full_graph=True, backend=None)
    for batch in (2, 3, 5):
        run(paddle.zeros([batch, 1]))
    return len(run.forward.program_cache)


def saved_model(folder):
    path = os.path.join(folder, "net")
    paddle.jit.save(make_tripling_layer(), path, input_spec=[paddle.static.InputSpec([None, 1], "float32")])
    return paddle.jit.load(path)(paddle.to_tensor([[2.0]]))
