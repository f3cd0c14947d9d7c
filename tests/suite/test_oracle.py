"""Compare the NumPy oracle with finite differences and with sums computed by hand. Needs no framework."""

import numpy
import pytest

from stele_suite import oracle, tasks
from stele_worker import frameworks, recipes

SETTINGS = {
    "device": "cpu",
    "threads": 1,
    "precision": "fp32",
    "autotune": False,
    "deterministic": True,
    "seed": 0,
}


def derivative(function, array, place, width=1e-6):
    """Return the derivative of ``function()`` by one number of ``array``, from a central difference."""
    before = array[place]
    array[place] = before + width
    above = function()
    array[place] = before - width
    below = function()
    array[place] = before
    return (above - below) / (2 * width)


def check(operation, *arrays):
    """Check every number of every gradient of ``operation(*arrays)``, with the value projected on a random array."""
    value, backward = operation(*arrays)[:2]
    projection = numpy.random.RandomState(99).standard_normal(value.shape)
    gradients = backward(projection)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    assert len(gradients) == len(arrays)
    for array, gradient in zip(arrays, gradients, strict=True):
        expected = numpy.empty_like(array)
        for place in numpy.ndindex(*array.shape):
            expected[place] = derivative(lambda: (operation(*arrays)[0] * projection).sum(), array, place)
        assert gradient.shape == array.shape
        numpy.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)


def arrays(*shapes):
    rng = numpy.random.RandomState(1)
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("leading", [(3,), (3, 2)])
def test_the_gradient_of_dense_equals_its_finite_difference(leading):
    check(oracle.dense, *arrays((*leading, 4), (5, 4), (5,)))


def test_the_gradient_of_embedding_sums_over_repeated_tokens():
    tokens = numpy.array([[0, 2, 2], [2, 0, 4]])
    check(lambda weight: oracle.embedding(tokens, weight), *arrays((5, 3)))


WINDOWS = [(1, 1, 4), (1, 2, 5), (3, 1, 4), (3, 2, 5), (3, 2, 6), (7, 2, 6)]


@pytest.mark.parametrize("size, stride, image", WINDOWS)
def test_the_gradient_of_convolution_equals_its_finite_difference(size, stride, image):
    images, weight, bias = arrays((2, image, image + 1, 3), (4, 3, size, size), (4,))
    check(lambda *inputs: oracle.convolution(*inputs, stride=stride), images, weight, bias)


@pytest.mark.parametrize("size, stride, image", WINDOWS)
def test_convolution_equals_its_definition(size, stride, image):
    x, weight, bias = arrays((2, image, image + 1, 3), (4, 3, size, size), (4,))
    value, _ = oracle.convolution(x, weight, bias, stride=stride)
    expected = numpy.empty((2, -(-image // stride), -(-(image + 1) // stride), 4))
    for sample, row, column, out in numpy.ndindex(*expected.shape):
        total = bias[out]
        for channel, i, j in numpy.ndindex(3, size, size):
            place = stride * row + i - size // 2, stride * column + j - size // 2
            if 0 <= place[0] < image and 0 <= place[1] < image + 1:
                total += x[(sample, *place, channel)] * weight[out, channel, i, j]
        expected[sample, row, column, out] = total
    assert value.shape == expected.shape
    numpy.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size, stride, image", [(1, 1, 4), (3, 1, 4), (3, 2, 5), (3, 2, 6)])
def test_the_gradient_of_depthwise_convolution_equals_its_finite_difference(size, stride, image):
    images, weight = arrays((2, image, image + 1, 3), (3, 1, size, size))
    check(lambda *inputs: oracle.depthwise_convolution(*inputs, stride=stride), images, weight)


@pytest.mark.parametrize("size, stride, image", [(3, 1, 4), (3, 2, 5), (3, 2, 6)])
def test_depthwise_convolution_is_a_convolution_in_which_no_two_channels_meet(size, stride, image):
    images, weight = arrays((2, image, image + 1, 3), (3, 1, size, size))
    dense = numpy.zeros((3, 3, size, size))
    dense[numpy.arange(3), numpy.arange(3)] = weight[:, 0]
    value, _ = oracle.depthwise_convolution(images, weight, stride=stride)
    numpy.testing.assert_allclose(value, oracle.convolution(images, dense, stride=stride)[0], atol=1e-12)


@pytest.mark.parametrize("operation", [oracle.relu6, oracle.tanh, oracle.gelu, oracle.gelu_tanh])
def test_the_gradients_of_activations_equal_their_finite_differences(operation):
    (x,) = arrays((3, 5))
    check(operation, 4 * x)


def test_relu6_limits_to_0_and_6():
    assert oracle.relu6(numpy.array([-1.0, 3.0, 9.0]))[0].tolist() == [0, 3, 6]


def test_gelu_multiplies_by_the_normal_distribution_and_its_approximation_is_close():
    x = numpy.array([-1.0, 0.0, 1.0])
    numpy.testing.assert_allclose(oracle.gelu(x)[0], [-0.15865525393145707, 0, 0.8413447460685429], rtol=1e-14)
    error = abs(oracle.gelu_tanh(x)[0] - oracle.gelu(x)[0]).max()
    assert 1e-5 < error < 1e-3


def test_the_gradient_of_layer_norm_equals_its_finite_difference():
    check(lambda *inputs: oracle.layer_norm(*inputs, 1e-3), *arrays((2, 3, 4), (4,), (4,)))


def test_layer_norm_normalises_each_position_by_its_biased_variance():
    x, scale, shift = arrays((2, 3, 4), (4,), (4,))
    expected = (x[1, 2] - x[1, 2].mean()) / numpy.sqrt(x[1, 2].var() + 1e-3) * scale + shift
    numpy.testing.assert_allclose(oracle.layer_norm(x, scale, shift, 1e-3)[0][1, 2], expected)


MASKS = {
    "none": None,
    "causal": numpy.tril(numpy.ones((3, 3), bool)),
    "padding": numpy.array([True, True, False]),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_the_gradient_of_attention_equals_its_finite_difference(mask):
    check(
        lambda *inputs: oracle.attention(*inputs, heads=2, mask=mask),
        *arrays((2, 3, 4), (2, 3, 4), (2, 3, 4)),
    )


def test_attention_equals_its_definition_and_ignores_masked_positions():
    query, key, value = arrays((1, 3, 4), (1, 5, 4), (1, 5, 4))
    mask = numpy.array([True, False, True, True, False])
    result, _ = oracle.attention(query, key, value, heads=2, mask=mask)
    for head in (slice(0, 2), slice(2, 4)):
        for place in range(3):
            scores = numpy.exp(key[0, mask, head].dot(query[0, place, head]) / numpy.sqrt(2))
            expected = (scores / scores.sum()).dot(value[0, mask, head])
            numpy.testing.assert_allclose(result[0, place, head], expected)


@pytest.mark.parametrize("size, stride, padding", [(2, 2, 0), (3, 2, 1)])
def test_the_gradient_of_max_pool_equals_its_finite_difference(size, stride, padding):
    check(lambda x: oracle.max_pool(x, size=size, stride=stride, padding=padding), *arrays((2, 6, 4, 3)))


def test_max_pool_never_selects_the_padding():
    value, _ = oracle.max_pool(numpy.full((1, 4, 4, 1), -5.0), size=3, stride=2, padding=1)
    assert value.shape == (1, 2, 2, 1)
    assert (value == -5).all()


def test_max_pool_passes_the_gradient_of_a_tie_to_one_value():
    _, backward = oracle.max_pool(numpy.zeros((1, 2, 2, 1)), size=2, stride=2)
    assert backward(numpy.ones((1, 1, 1, 1))).sum() == 1


@pytest.mark.parametrize("operation", [oracle.average_pool, oracle.channels_first, oracle.relu])
def test_the_gradients_of_operations_without_parameters_equal_their_finite_differences(operation):
    check(operation, *arrays((2, 3, 4, 5)))


def test_channels_first_flattens_in_the_order_channel_row_column():
    x = numpy.arange(24).reshape(1, 2, 3, 4)
    assert oracle.channels_first(x)[0][0, :3].tolist() == [0, 4, 8]


def test_the_gradient_of_dropout_equals_its_finite_difference():
    check(lambda x: oracle.dropout(x, 0.3, numpy.random.RandomState(5)), *arrays((4, 6)))


def test_dropout_drops_its_rate_and_keeps_the_mean():
    value, _ = oracle.dropout(numpy.ones((100, 1000)), 0.25, numpy.random.RandomState(0))
    assert abs((value == 0).mean() - 0.25) < 0.01
    assert abs(value.mean() - 1) < 0.01


def test_dropout_does_nothing_in_inference_or_at_rate_0():
    x = numpy.ones((4, 6))
    assert (oracle.dropout(x, 0.5, None)[0] == x).all()
    assert (oracle.dropout(x, 0.0, numpy.random.RandomState(0))[0] == x).all()


def test_the_gradient_of_batch_norm_equals_its_finite_difference():
    check(lambda *inputs: oracle.batch_norm(*inputs, 1e-3), *arrays((2, 3, 2, 4), (4,), (4,)))


def test_batch_norm_normalises_by_the_biased_variance_and_reports_the_unbiased_one():
    x, scale, shift = arrays((2, 3, 2, 4), (4,), (4,))
    value, _, (mean, variance) = oracle.batch_norm(x, scale, shift, 1e-3)
    flat = x.reshape(12, 4)
    numpy.testing.assert_allclose(mean, flat.sum(0) / 12)
    numpy.testing.assert_allclose(variance, ((flat - mean) ** 2).sum(0) / 11)
    expected = (flat - mean) / numpy.sqrt(variance * 11 / 12 + 1e-3) * scale + shift
    numpy.testing.assert_allclose(value.reshape(12, 4), expected)


def test_normalise_agrees_with_batch_norm_on_the_same_statistics():
    x, scale, shift = arrays((2, 3, 2, 4), (4,), (4,))
    by_batch = oracle.batch_norm(x, scale, shift, 1e-3)[0]
    by_statistics = oracle.normalise(x, scale, shift, x.mean((0, 1, 2)), x.var((0, 1, 2)), 1e-3)
    numpy.testing.assert_allclose(by_statistics, by_batch)


def test_the_gradient_of_softmax_cross_entropy_equals_its_finite_difference():
    labels = numpy.array([0, 2, 1, 2], numpy.int32)
    check(lambda logits: oracle.softmax_cross_entropy(logits, labels), *arrays((4, 3)))


def test_the_gradient_of_a_smoothed_cross_entropy_over_positions_equals_its_finite_difference():
    labels = numpy.array([[0, 2], [1, 2]], numpy.int32)
    check(lambda logits: oracle.softmax_cross_entropy(logits, labels, 0.1), *arrays((2, 2, 3)))


def test_a_smoothed_label_spreads_its_part_over_all_classes():
    loss, _ = oracle.softmax_cross_entropy(numpy.log([[0.5, 0.25, 0.25]]), numpy.array([0]), 0.3)
    assert loss == pytest.approx(-(0.8 * numpy.log(0.5) + 0.2 * numpy.log(0.25)))


def test_softmax_cross_entropy_is_the_mean_logarithm_and_accepts_large_logits():
    logits = numpy.array([[1000.0, 1000.0], [0.0, numpy.log(3)]])
    loss, _ = oracle.softmax_cross_entropy(logits, numpy.array([0, 1]))
    assert loss == pytest.approx((numpy.log(2) + numpy.log(4 / 3)) / 2)


def test_two_steps_of_sgd_equal_sums_by_hand():
    net = {"w": numpy.array([1.0])}
    update = oracle.sgd(net, learning_rate=0.1, momentum=0.9)
    update({"w": numpy.array([2.0])})  # v = 2
    assert net["w"] == pytest.approx(0.8)
    update({"w": numpy.array([1.0])})  # v = 0.9 * 2 + 1 = 2.8
    assert net["w"] == pytest.approx(0.52)


def test_two_steps_of_adam_equal_sums_by_hand():
    net = {"w": numpy.array([1.0])}
    update = oracle.adam(net, learning_rate=0.1, beta1=0.5, beta2=0.75, epsilon=1.0)
    update({"w": numpy.array([2.0])})  # m = 1 / 0.5 = 2; v = 1 / 0.25 = 4; step 0.1 * 2 / (2 + 1)
    assert net["w"] == pytest.approx(1 - 0.2 / 3)
    update({"w": numpy.array([4.0])})  # m = 2.5 / 0.75 = 10 / 3; v = 4.75 / 0.4375 = 76 / 7
    assert net["w"] == pytest.approx(1 - 0.2 / 3 - 0.1 * (10 / 3) / ((76 / 7) ** 0.5 + 1))


def test_weights_that_do_not_match_the_network_are_named():
    net = oracle.zero_parameters({"a": (2,), "b": (3,)})
    with pytest.raises(ValueError, match="in shape from the Task's: b, c"):
        oracle.load_weights(net, {"a": numpy.ones(2), "b": numpy.ones(2), "c": numpy.ones(1)})


def test_a_network_copies_its_weights():
    weights = {"a": numpy.ones(2)}
    net = oracle.load_weights(oracle.zero_parameters({"a": (2,)}), weights)
    net["a"] -= 1
    assert (weights["a"] == 1).all()


def make_network(name, batch, **changes):
    """Return (recipe, task, network, x, y) with the Task's seeded weights."""
    module, recipe = tasks.load(name), recipes.load(name, "numpy")
    task = tasks.make(name, "smoke", **changes)
    net = recipe.load(recipe.network(task), module.weights(task))
    return (recipe, task, net, *module.example(task._replace(seed=1), batch))


def tiny_gru():
    recipe = recipes.load("gru", "numpy")
    task = tasks.make("gru", "smoke", vocabulary=7, embedding=3, hidden=4)
    rng = numpy.random.RandomState(2)
    shapes = {
        "embedding.weight": (7, 3),
        "gru.input_weight": (12, 3),
        "gru.hidden_weight": (12, 4),
        "gru.input_bias": (12,),
        "gru.hidden_bias": (12,),
        "dense.weight": (2, 4),
        "dense.bias": (2,),
    }
    weights = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    net = recipe.load({name: numpy.zeros(shape) for name, shape in shapes.items()}, weights)
    return recipe, task, net, rng.randint(0, 7, (3, 5)), rng.randint(0, 2, 3)


SIZES = {"batch": 2, "length": 5, "layers": 1, "hidden": 4, "heads": 2, "inner": 6, "vocabulary": 7}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer", "encoder", "decoder"])
def test_the_gradients_of_networks_with_attention_equal_finite_differences_of_their_loss(name):
    recipe, task = recipes.load(name, "numpy"), tasks.without_dropout(tasks.make(name, "smoke", **SIZES))
    net = recipe.load(recipe.network(task), tasks.weights(task))
    batch = tasks.load(name).example(task, task.batch)
    _, gradients = recipe.gradients(net, task)(*batch)
    assert list(gradients) == list(net)
    for parameter, gradient in gradients.items():
        check_places(lambda: recipe.gradients(net, task)(*batch)[0], net[parameter], gradient)


def check_places(loss, array, gradient):
    """Compare five numbers of a gradient, chosen at random, with finite differences."""
    rng = numpy.random.RandomState(3)
    for _ in range(5):
        place = tuple(rng.randint(0, size) for size in array.shape)
        assert gradient[place] == pytest.approx(derivative(loss, array, place), rel=1e-4, abs=1e-8)


@pytest.mark.slow
def test_the_gradients_of_mobilenetv2_equal_finite_differences_of_its_loss(monkeypatch):
    monkeypatch.setattr(tasks.load("mobilenetv2"), "STAGES", ((1, 4, 1, 1), (2, 6, 2, 2)))
    recipe, task = (
        recipes.load("mobilenetv2", "numpy"),
        tasks.make("mobilenetv2", "smoke", image=16, dropout=(0.0,)),
    )
    net = recipe.load(recipe.network(task), tasks.weights(task))
    x, y = tasks.load("mobilenetv2").example(task, 3)
    _, gradients = recipe.gradients(net, task)(x, y)
    for parameter, gradient in gradients.items():
        check_places(lambda: recipe.gradients(net, task)(x, y)[0], net[parameter], gradient)


@pytest.mark.slow
def test_the_gradients_of_densenet121_equal_finite_differences_of_its_loss(monkeypatch):
    monkeypatch.setattr(tasks.load("densenet121"), "BLOCKS", (2, 1))
    recipe, task = (
        recipes.load("densenet121", "numpy"),
        tasks.make("densenet121", "smoke", image=16, growth=2),
    )
    net = recipe.load(recipe.network(task), tasks.weights(task))
    x, y = tasks.load("densenet121").example(task, 3)
    _, gradients = recipe.gradients(net, task)(x, y)
    for parameter, gradient in gradients.items():
        check_places(lambda: recipe.gradients(net, task)(x, y)[0], net[parameter], gradient)


def test_the_gradients_of_stack_equal_finite_differences_of_its_loss():
    recipe, task = recipes.load("stack", "numpy"), tasks.make("stack", "parity", width=6, depth=2)
    weights = tasks.weights(task)
    for name in weights:
        if name.endswith("bias"):
            weights[name] += 0.1  # the sum of a layer without input is 0 otherwise, where ReLU has no derivative
    net = recipe.load(recipe.network(task), weights)
    x, y = tasks.load("stack").example(task, 4)
    _, gradients = recipe.gradients(net, task)(x, y)
    for parameter, gradient in gradients.items():
        check_places(lambda: recipe.gradients(net, task)(x, y)[0], net[parameter], gradient)


@pytest.mark.parametrize("name", ["transformer", "encoder", "decoder", "mobilenetv2"])
def test_dropout_of_a_network_is_only_in_training(name):
    changes = {"image": 32} if name == "mobilenetv2" else SIZES
    recipe, task = recipes.load(name, "numpy"), tasks.make(name, "smoke", **changes)
    net = recipe.load(recipe.network(task), tasks.weights(task))
    *inputs, y = tasks.load(name).example(task, 2)
    plain = tasks.without_dropout(task)
    assert recipe.gradients(net, task)(*inputs, y)[0] != recipe.gradients(net, plain)(*inputs, y)[0]
    expected = recipe.inference_step(net, plain)(*inputs)
    assert (recipe.inference_step(net, task)(*inputs) == expected).all()


def check_direction(loss, array, gradient):
    """Compare a gradient with the derivative of the loss, in the direction of the gradient plus as much noise."""
    noise = numpy.random.RandomState(4).standard_normal(gradient.shape)
    direction = gradient + noise * numpy.sqrt((gradient**2).mean())
    before = array.copy()
    position = numpy.zeros(1)

    def shifted_loss():
        array[...] = before + position[0] * direction
        return loss()

    width = 1e-8 / numpy.abs(direction).max()  # small, so that almost no ReLU or maximum switches
    expected = derivative(shifted_loss, position, 0, width)
    array[...] = before
    assert (gradient * direction).sum() == pytest.approx(expected, rel=1e-4)
    assert expected != 0


def test_the_gradients_of_the_gru_equal_finite_differences_of_its_loss():
    recipe, task, net, x, y = tiny_gru()
    _, gradients = recipe.gradients(net, task)(x, y)
    for name, gradient in gradients.items():
        expected = numpy.empty_like(net[name])
        for place in numpy.ndindex(*expected.shape):
            expected[place] = derivative(lambda: recipe.gradients(net, task)(x, y)[0], net[name], place)
        numpy.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-8, err_msg=name)


def test_the_gru_equals_its_equations():
    recipe, task, net, x, _ = tiny_gru()

    def sigmoid(v):
        return 1 / (1 + numpy.exp(-v))

    (w_r, w_z, w_n), (u_r, u_z, u_n), (b_r, b_z, b_n), (c_r, c_z, c_n) = [
        net["gru." + part].reshape((3, 4, -1)).squeeze()
        for part in ("input_weight", "hidden_weight", "input_bias", "hidden_bias")
    ]
    for tokens, logits in zip(x, recipe.inference_step(net, task)(x), strict=True):
        h = numpy.zeros(4)
        for v in net["embedding.weight"][tokens]:
            r = sigmoid(w_r.dot(v) + b_r + u_r.dot(h) + c_r)
            z = sigmoid(w_z.dot(v) + b_z + u_z.dot(h) + c_z)
            n = numpy.tanh(w_n.dot(v) + b_n + r * (u_n.dot(h) + c_n))
            h = (1 - z) * n + z * h
        numpy.testing.assert_allclose(logits, net["dense.weight"].dot(h) + net["dense.bias"], rtol=1e-12)


def test_the_gradients_of_the_cnn_equal_finite_differences_of_its_loss():
    recipe, task, net, x, y = make_network("cnn", 1)
    _, gradients = recipe.gradients(net, task)(x, y)

    def loss():
        random = numpy.random.RandomState(task.seed)
        return oracle.softmax_cross_entropy(recipe.forward(net, task, x, random)[0], y)[0]

    assert list(gradients) == list(net)
    for name, gradient in gradients.items():
        check_direction(loss, net[name], gradient)


def test_the_cnn_equals_its_layers():
    recipe, task, net, x, _ = make_network("cnn", 2)
    rng = numpy.random.RandomState(6)
    net.update((name, 0.1 * rng.standard_normal(net[name].shape)) for name in net if name.endswith(".bias"))
    layers = "conv1 relu conv2 pool relu conv3 relu conv4 pool relu flat dense1 relu dense2"
    value = x.astype(numpy.float64)
    for layer in layers.split():
        if layer == "relu":
            value = value.clip(min=0)
        elif layer == "pool":
            value = value.reshape(2, value.shape[1] // 2, 2, value.shape[2] // 2, 2, -1).max((2, 4))
        elif layer == "flat":
            value = value.transpose(0, 3, 1, 2).reshape(2, 6400)
        else:
            operation = oracle.dense if layer.startswith("dense") else oracle.convolution
            value, _ = operation(value, net[layer + ".weight"], net[layer + ".bias"])
    numpy.testing.assert_allclose(recipe.inference_step(net, task)(x), value, rtol=1e-12)


def take_two_steps(recipe, task, net, x, y):
    """Take two training steps on one batch; return (parameters before, gradients of both steps)."""
    task = tasks.without_dropout(task)
    step, before, gradients = recipe.training_step(net, task), {}, []
    for _ in range(2):
        loss, step_gradients = recipe.gradients(net, task)(x, y)
        before = before or {name: net[name].copy() for name in step_gradients}
        assert step(x, y) == loss
        gradients.append(step_gradients)
    return before, gradients


def check_sgd(task, net, before, gradients):
    for name, start in before.items():
        first, second = [step_gradients[name] for step_gradients in gradients]
        expected = start - task.learning_rate * (first + task.momentum * first + second)
        numpy.testing.assert_allclose(net[name], expected, rtol=1e-12, atol=1e-14)


def test_training_steps_of_the_cnn_apply_sgd_to_its_gradients():
    recipe, task, net, x, y = make_network("cnn", 1)
    check_sgd(task, net, *take_two_steps(recipe, task, net, x, y))


def test_training_steps_of_the_gru_apply_adam_to_its_gradients():
    recipe, task, net, x, y = tiny_gru()
    before, gradients = take_two_steps(recipe, task, net, x, y)
    for name, start in before.items():
        g, h = [step_gradients[name] for step_gradients in gradients]
        mean, square = (0.09 * g + 0.1 * h) / 0.19, (0.000999 * g**2 + 0.001 * h**2) / 0.001999
        first, second = g / (numpy.abs(g) + 1e-8), mean / (numpy.sqrt(square) + 1e-8)
        numpy.testing.assert_allclose(net[name], start - 1e-3 * (first + second), rtol=1e-10)


def test_inference_after_training_uses_the_trained_parameters():
    recipe, task, net, x, y = tiny_gru()
    before = recipe.inference_step(net, task)(x)
    recipe.training_step(net, task)(x, y)
    assert (recipe.inference_step(net, task)(x) != before).all()


def test_dropout_of_the_cnn_is_only_in_training_and_depends_on_the_seed():
    recipe, task, net, x, y = make_network("cnn", 1)
    no_dropout = tasks.without_dropout(task)
    loss = recipe.gradients(net, task)(x, y)[0]
    assert loss == recipe.gradients(net, task)(x, y)[0]
    assert loss != recipe.gradients(net, task._replace(seed=1))(x, y)[0]
    assert (recipe.inference_step(net, task)(x) == recipe.inference_step(net, no_dropout)(x)).all()


@pytest.mark.parametrize("rates", [(0.5, 0.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.0, 0.5)])
def test_each_dropout_of_the_cnn_changes_the_output(rates):
    recipe, task, net, x, _ = make_network("cnn", 1, dropout=rates)
    with_dropout, _ = recipe.forward(net, task, x, numpy.random.RandomState(0))
    without_dropout, _ = recipe.forward(net, task, x)
    assert not numpy.allclose(with_dropout, without_dropout)


@pytest.fixture
def tiny_resnet50(monkeypatch):
    """Return the recipe with two stages of two narrow blocks each."""
    monkeypatch.setattr(tasks.load("resnet50"), "STAGES", ((2, 4, 1), (2, 8, 2)))
    recipe = recipes.load("resnet50", "numpy")
    task = tasks.make("resnet50", "smoke", features=32, classes=5)
    rng = numpy.random.RandomState(3)
    zeros = recipe.network(task)
    weights = {name: 0.3 * rng.standard_normal(array.shape) for name, array in zeros.items()}
    weights.update((name, 1 + array**2) for name, array in weights.items() if name.endswith("running_var"))
    net = recipe.load(zeros, weights)
    return recipe, task, net, rng.standard_normal((4, 16, 18, 3)), rng.randint(0, 5, 4)


def test_the_gradients_of_resnet50_equal_finite_differences_of_its_loss(tiny_resnet50):
    recipe, task, net, x, y = tiny_resnet50
    _, gradients = recipe.gradients(net, task)(x, y)

    def loss():
        logits, _ = recipe.forward(dict(net), task, x, numpy.random.RandomState(0))
        return oracle.softmax_cross_entropy(logits, y)[0]

    assert list(gradients) == [name for name in net if ".running_" not in name]
    for name, gradient in gradients.items():
        check_direction(loss, net[name], gradient)


def test_running_statistics_change_only_in_training(tiny_resnet50):
    recipe, task, net, x, y = tiny_resnet50
    before = {name: array.copy() for name, array in net.items()}
    recipe.gradients(net, task)(x, y)
    recipe.inference_step(net, task)(x)
    assert all((net[name] == before[name]).all() for name in net)
    recipe.training_step(net, task)(x, y)
    assert all((net[name] != before[name]).any() for name in net)
    conv1, _ = oracle.convolution(x, before["conv1.weight"], stride=2)
    mean, variance = conv1.mean((0, 1, 2)), conv1.reshape(-1, 64).var(0, ddof=1)
    numpy.testing.assert_allclose(net["bn1.running_mean"], 0.9 * before["bn1.running_mean"] + 0.1 * mean)
    numpy.testing.assert_allclose(net["bn1.running_var"], 0.9 * before["bn1.running_var"] + 0.1 * variance)


def test_training_steps_of_resnet50_apply_sgd_to_its_gradients(tiny_resnet50):
    recipe, task, net, x, y = tiny_resnet50
    check_sgd(task, net, *take_two_steps(recipe, task, net, x, y))


def test_resnet50_inference_equals_its_definition_with_running_statistics(tiny_resnet50):
    recipe, task, net, x, _ = tiny_resnet50

    def unit(value, conv, norm, stride):
        value, _ = oracle.convolution(value, net[conv + ".weight"], stride=stride)
        deviation = numpy.sqrt(net[norm + ".running_var"] + 1e-5)
        return (value - net[norm + ".running_mean"]) / deviation * net[norm + ".weight"] + net[norm + ".bias"]

    value = unit(x, "conv1", "bn1", 2).clip(min=0)
    value, _ = oracle.max_pool(value, size=3, stride=2, padding=1)
    for name, stride in [("layer1.0", 1), ("layer1.1", 1), ("layer2.0", 2), ("layer2.1", 1)]:
        shortcut = value
        if name.endswith(".0"):
            shortcut = unit(value, name + ".downsample.0", name + ".downsample.1", stride)
        value = unit(value, name + ".conv1", name + ".bn1", 1).clip(min=0)
        value = unit(value, name + ".conv2", name + ".bn2", stride).clip(min=0)
        value = (unit(value, name + ".conv3", name + ".bn3", 1) + shortcut).clip(min=0)
    expected = value.mean((1, 2))
    assert expected.shape == (4, 32)
    numpy.testing.assert_allclose(recipe.inference_step(net, task)(x), expected, rtol=1e-10)


def test_the_numpy_framework_does_not_change_arrays():
    numpy_framework = frameworks.load("numpy")
    numpy_framework.configure(SETTINGS)
    data = numpy_framework.put(numpy.arange(6.0).reshape(3, 2))
    rows = numpy_framework.take(data, numpy.array([2, 0]))
    numpy_framework.wait(rows)
    assert numpy_framework.fetch(rows).tolist() == [[4, 5], [0, 1]]
    assert numpy_framework.versions()["numpy"] == numpy.__version__
    assert numpy_framework.flags()["device"] == "cpu"
    assert numpy_framework.peak_memory() is None


@pytest.mark.parametrize("key, value", [("device", "cuda"), ("precision", "tf32")])
def test_the_numpy_framework_rejects_unsupported_settings(key, value):
    with pytest.raises(RuntimeError, match=f"not '{value}': use {key}"):
        frameworks.load("numpy").configure(dict(SETTINGS, **{key: value}))
