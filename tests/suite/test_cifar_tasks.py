"""cifar-fast and cifar-airbench in NumPy: tasks, tables of crops and flips, whitening, and the oracle."""

import numpy
import pytest

from stele.parity import golden_numbers, ladder
from stele_suite import oracle, tasks
from stele_suite.tasks import augmentation, cifar_airbench, cifar_fast
from stele_suite.tasks.whitening import whitening_filters
from stele_worker import agreement, frameworks, recipes, subjects

RANDOM = numpy.random.RandomState
ROUNDING = 2.0**-22  # relative: two units in the last place of float32


def count(arrays, is_trained):
    return sum(array.size for name, array in arrays.items() if is_trained(name))


def test_resnet9_has_the_parameters_of_the_article():
    plain = cifar_fast.Task(tricks=())
    assert count(tasks.weights(plain), cifar_fast.is_trained) == 6_573_120


def test_airbench_has_the_parameters_that_its_page_says():
    arrays = tasks.weights(cifar_airbench.Task())
    assert count(arrays, lambda name: ".running_" not in name) == 1_971_640


@pytest.mark.parametrize(
    ("tricks", "epochs", "knots"),
    [
        ((), 24, {0: 0.0, 5: 0.4, 24: 0.0}),
        (("label-smoothing",), 20, {4: 0.4, 20: 0.0}),
        (("label-smoothing", "ghost-norm"), 20, {4: 0.6}),
        (cifar_fast.ALL, 10, {2: 1.0, 8: 0.1, 10: 0.1}),
    ],
)
def test_the_learning_rate_has_the_knots_of_the_article(tricks, epochs, knots):
    task = cifar_fast.Task(tricks=tricks, epochs=epochs, train=5000, batch=50)
    rates = cifar_fast.learning_rates(task)
    assert rates.shape == (epochs * 100,)
    for epoch, rate in knots.items():
        assert rates[max(epoch * 100 - 1, 0)] == pytest.approx(rate, abs=5e-3)


def test_all_tricks_are_in_the_ablation_once_and_each_changes_a_choice():
    assert set(cifar_fast.ALL) | {tasks.BASELINE} == set(cifar_fast.EPOCHS)
    none = cifar_fast.Task(tricks=())
    outside = {"schedule": cifar_fast.learning_rates, cifar_fast.DEVICE: cifar_fast.on_host}
    for trick in cifar_fast.ALL:
        look = outside.get(trick, cifar_fast.choices)
        assert not numpy.array_equal(look(none), look(none._replace(tricks=(trick,)))), trick


def test_the_bias_of_a_frozen_normalisation_has_a_large_rate_and_a_small_decay():
    task = cifar_fast.Task()
    assert cifar_fast.rate_and_decay(task, "prep.norm.bias") == (64, 5e-4 / 64)
    assert cifar_fast.rate_and_decay(task, "prep.conv.weight") == (1, 5e-4)
    assert cifar_fast.rate_and_decay(task._replace(tricks=()), "prep.norm.bias") == (1, 5e-4)


def test_rates_of_airbench_fall_to_0_and_that_of_the_whitening_bias_after_three_epochs():
    rates, whiten = cifar_airbench.learning_rates(cifar_airbench.Task(train=20000))
    assert (rates[0], rates[40], rates[79]) == pytest.approx((1, 0.5, 1 / 80))
    assert (whiten[0], whiten[15], whiten[30:].max()) == pytest.approx((1, 0.5, 0))


def ramp(samples=6):
    """Return images in which a pixel tells where it is: row, column, image."""
    place = numpy.indices((32, 32)).transpose(1, 2, 0)
    return numpy.stack([numpy.dstack([place, numpy.full((32, 32), one)]) for one in range(samples)]).astype(float)


def test_a_crop_shows_reflected_pixels_outside_of_the_image():
    table = augmentation.Table(
        augmentation.window(numpy.array([0, 8]), 4), augmentation.window(numpy.array([4, 4]), 4), None, None
    )
    first, second = augmentation.apply(table, ramp(2))
    assert first[:6, 0, 0].tolist() == [4, 3, 2, 1, 0, 1]
    assert second[-6:, 0, 0].tolist() == [30, 31, 30, 29, 28, 27]
    assert (first[:, :, 1] == numpy.arange(32)).all()
    expected = numpy.pad(ramp(1)[0], [(4, 4), (4, 4), (0, 0)], "reflect")[:32, 4:36]
    assert (first == expected).all()


def test_crops_start_at_every_place_and_flips_are_even():
    table = augmentation.crops(RANDOM(0), 5000, 2)
    assert sorted({int(one) for one in table.rows[:, 5]}) == [3, 4, 5, 6, 7]
    assert 2300 < augmentation.coins(RANDOM(0), 5000).sum() < 2700


def test_a_square_is_cut_out_everywhere_with_the_same_probability_to_be_first():
    task = cifar_fast.Task(tricks=(cifar_fast.DEVICE,), train=500)
    table = cifar_fast.augmentation_table(task, 0)
    images = augmentation.apply(table, numpy.ones((500, 32, 32, 3), numpy.float32))
    assert ((images == 0).all(3).sum((1, 2)) == 64).all()
    assert table.cut_rows[:, 0].any() and table.cut_rows[:, 31].any()


def test_an_epoch_has_its_own_table_and_a_seed_repeats_it():
    task = cifar_fast.Task(train=50)
    first, again = (cifar_fast.augmentation_table(task, 3).rows for _ in range(2))
    assert (first == again).all()
    assert (first != cifar_fast.augmentation_table(task, 4).rows).any()
    assert (first != cifar_fast.augmentation_table(task._replace(seed=1), 3).rows).any()


def test_airbench_flips_in_turns_what_it_did_not_flip_before():
    task = cifar_airbench.Task(train=200)
    flips = [columns[:, 0] > columns[:, 31] for columns in
             (cifar_airbench.augmentation_table(task, epoch).columns for epoch in range(4))]  # fmt: skip
    assert (flips[0] == ~flips[1]).all() and (flips[0] == flips[2]).all() and (flips[1] == flips[3]).all()
    assert 60 < flips[0].sum() < 140


def test_whitened_patches_are_uncorrelated_and_have_variance_1():
    mixed = RANDOM(0).standard_normal((600, 8, 8, 3)).dot(RANDOM(1).standard_normal((3, 3)))
    filters = whitening_filters(mixed.astype(numpy.float32), 3, 0.0)
    outputs, _ = oracle.convolution(mixed, filters.astype(float))
    flat = outputs[:, 1:-1, 1:-1].reshape(-1, 27)
    numpy.testing.assert_allclose(flat.T.dot(flat) / len(flat), numpy.eye(27), atol=2e-3)
    assert filters.dtype == numpy.float32


def test_filters_for_the_data_replace_the_noise_and_nothing_else():
    images = RANDOM(0).standard_normal((50, 32, 32, 3)).astype(numpy.float32)
    for module, shape in ((cifar_fast, (27, 3, 3, 3)), (cifar_airbench, (24, 3, 2, 2))):
        task = module.Task(width=4)
        before = tasks.weights(task)
        after = module.fitted(task, before, images)
        assert list(after) == list(before) and after["whiten.weight"].shape == shape
        changed = [name for name in before if not numpy.array_equal(before[name], after[name])]
        assert changed == ["whiten.weight"]
    plain = cifar_fast.Task(tricks=())
    assert cifar_fast.fitted(plain, {}, images) == {}


def test_dirac_filters_pass_the_first_channels_on_unchanged():
    x, weight = RANDOM(0).standard_normal((2, 5, 5, 3)), cifar_airbench.dirac(numpy.ones((4, 3, 3, 3)))
    value, _ = oracle.convolution(x, weight)
    numpy.testing.assert_allclose(value[..., :3], x)
    assert abs(value[..., 3]).max() > 1


def tiny(name, **changes):
    task = tasks.make(name, "parity", width=1, batch=4, **changes)
    recipe = recipes.load(name, "numpy")
    net = recipe.load(recipe.network(task), tasks.weights(task))
    return recipe, task, net, *tasks.load(name).example(task, task.batch)


@pytest.mark.parametrize(
    ("name", "changes"),
    [("cifar-fast", {"ghost": 2}), ("cifar-fast", {"tricks": ()}), ("cifar-airbench", {"epsilon": 1e-5})],
)
def test_the_gradients_of_a_network_equal_finite_differences_of_its_loss(name, changes):
    recipe, task, net, x, y = tiny(name, **changes)
    compute = recipe.gradients(net, task)
    _, gradients = compute(x, y)
    for parameter, gradient in gradients.items():
        place = numpy.unravel_index(numpy.abs(gradient).argmax(), gradient.shape)
        before, losses = net[parameter][place], []
        for change in (1e-6, -1e-6):
            net[parameter][place] = before + change
            losses.append(compute(x, y)[0])
        net[parameter][place] = before
        assert (losses[0] - losses[1]) / 2e-6 == pytest.approx(gradient[place], rel=2e-3), parameter


def test_two_steps_of_nesterov_equal_sums_by_hand():
    net = {"w": numpy.array([1.0])}
    update = oracle.nesterov(net, rates=[0.1, 0.2], momentum=0.5, rate_and_decay=lambda name: (2, 0.25))
    update({"w": numpy.array([1.0])})  # change -0.2 * 1.25 = -0.25; v = -0.25
    assert net["w"] == pytest.approx(1 - 0.125 - 0.25)
    update({"w": numpy.array([1.0])})  # change -0.4 * (1 + 0.15625) = -0.4625; v = -0.125 - 0.4625
    assert net["w"] == pytest.approx(0.625 - 0.5 * 0.5875 - 0.4625)


def test_two_steps_with_the_rate_outside_of_the_velocity_equal_sums_by_hand():
    net = {"w": numpy.array([1.0])}
    update = oracle.outer_nesterov(net, momentum=0.5, rate_and_decay=lambda name: (0.1, 0.0))
    update({"w": numpy.array([2.0])}, lambda name: 1.0)  # v = 2
    assert net["w"] == pytest.approx(1 - 0.1 * 3)
    update({"w": numpy.array([1.0])}, lambda name: 0.5)  # v = 2
    assert net["w"] == pytest.approx(0.7 - 0.05 * 2)


@pytest.mark.parametrize("shape", [(3, 7), (7, 3)])
def test_newton_and_schulz_keep_singular_vectors_and_bring_singular_values_near_1(shape):
    matrix = RANDOM(0).standard_normal(shape)
    value = oracle.newton_schulz(matrix, cifar_airbench.COEFFICIENTS, 5, 1e-7)
    left, _, right = numpy.linalg.svd(matrix, full_matrices=False)
    inner = left.T.dot(value).dot(right.T)
    assert abs(inner - numpy.diag(numpy.diag(inner))).max() < 1e-9
    assert numpy.diag(inner).min() > 0.6 and numpy.diag(inner).max() < 1.3


def test_a_step_of_muon_scales_the_filters_and_moves_along_the_direction():
    net = {"w": numpy.full((2, 1, 1, 2), 3.0)}
    update = oracle.muon(net, momentum=0.5, orthogonal=lambda matrix: numpy.sign(matrix))
    update({"w": numpy.array([1.0, -1.0, 1.0, 1.0]).reshape(2, 1, 1, 2)}, 0.25)
    scaled = 3.0 * 2**0.5 / 6.0
    assert net["w"].ravel() == pytest.approx([scaled - 0.25, scaled + 0.25, scaled - 0.25, scaled - 0.25])


def test_ghost_batches_are_normalised_by_themselves():
    x, scale, shift = RANDOM(0).standard_normal((6, 2, 2, 3)), numpy.ones(3), numpy.zeros(3)
    value, _, (mean, variance) = oracle.ghost_batch_norm(x, scale, shift, 1e-3, 2)
    for group in range(3):
        alone, _, _ = oracle.batch_norm(x[group::3], scale, shift, 1e-3)
        numpy.testing.assert_allclose(value[group::3], alone)
    numpy.testing.assert_allclose(mean, x.mean((0, 1, 2)))
    numpy.testing.assert_allclose(
        variance, numpy.mean([x[one::3].reshape(-1, 3).var(0, ddof=1) for one in range(3)], 0)
    )


def test_the_moving_average_is_evaluated_and_follows_the_weights_every_five_steps():
    recipe, task, net, x, y = tiny("cifar-fast", tricks=("ema",))
    first = {name: array.copy() for name, array in net.items()}
    step = recipe.training_step(net, task)
    kept = 0.99**5
    expected = first
    for number in range(1, 10):
        step(x, y)
        if number in (1, 6):
            expected = {name: kept * old + (1 - kept) * net[name] for name, old in expected.items()}
    for name, average in net.average.items():
        numpy.testing.assert_allclose(average, expected[name], atol=1e-12)
    plain = dict(net)
    evaluated = recipe.inference_step(net, task)(x)
    net.average = None
    assert abs(evaluated - recipe.inference_step(net, task)(x)).max() > 1e-6
    assert all((plain[name] == net[name]).all() for name in plain)


def test_an_image_and_its_mirror_image_have_the_same_logits():
    recipe, task, net, x, _ = tiny("cifar-fast")
    evaluate = recipe.inference_step(net, task)
    numpy.testing.assert_allclose(evaluate(x), evaluate(x[:, :, ::-1]), rtol=1e-6)


def test_airbench_evaluates_six_views_of_an_image():
    recipe, task, net, x, _ = tiny("cifar-airbench")
    padded = numpy.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], "reflect")
    moved = (padded[:, :32, :32], padded[:, 2:, 2:])
    views = [(x, 0.25), (x[:, :, ::-1], 0.25), *((one, 0.125) for y in moved for one in (y, y[:, :, ::-1]))]
    expected = sum(share * recipe.forward(net, task, one)[0] for one, share in views)
    numpy.testing.assert_allclose(recipe.inference_step(net, task)(x), expected)


def drawn(plan, *, seed=0, epoch=0):
    def draw(samples, limit, number):
        return RANDOM(number).randint(0, limit, (samples, 1))

    return augmentation.drawn(plan, draw, numpy.arange(32), seed, epoch)


def test_the_table_of_the_open_division_is_one_that_the_closed_division_can_draw():
    plan = cifar_fast.augmentation_plan(tasks.make("cifar-fast", "cpu", train=2000))
    table = drawn(plan)
    windows = augmentation.window(numpy.arange(9), 4)
    assert {tuple(row) for row in table.rows} == {tuple(row) for row in windows}
    assert {tuple(row) for row in table.columns} == {tuple(row) for row in (*windows, *windows[:, ::-1])}
    assert table.cut_rows is None
    flips = (table.columns[:, 16] < table.columns[:, 15]).mean()
    assert 0.46 < flips < 0.54


def test_a_square_of_the_open_division_is_inside_of_the_image():
    table = drawn(augmentation.Plan(2000, 4, 5, alternates=False))
    for cut in (table.cut_rows, table.cut_columns):
        assert (cut.sum(1) == 5).all() and cut.any(0).all()


def test_the_open_division_of_airbench_inverts_the_flips_of_every_epoch():
    plan = cifar_airbench.augmentation_plan(tasks.make("cifar-airbench", "cpu", train=500))
    first, second, third = (drawn(plan, epoch=epoch) for epoch in range(3))
    assert ((first.columns[:, 16] < first.columns[:, 15]) != (second.columns[:, 16] < second.columns[:, 15])).all()
    assert ((first.columns[:, 16] < first.columns[:, 15]) == (third.columns[:, 16] < third.columns[:, 15])).all()
    assert (first.rows != third.rows).any() and (first.rows != drawn(plan, seed=1).rows).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cifar-fast", "cifar-airbench"])
def test_rounding_of_the_weights_decides_no_rung(name):
    framework, golden = frameworks.load("numpy"), golden_numbers.load(name)
    subject = subjects.find(framework, name, "parity", golden_numbers.seed(name), "float32")
    arrays = [framework.put(array) for array in subject.arrange(subject.parity_batch())]
    for trial in range(8):
        random = RANDOM(trial)
        weights = {
            key: array.astype(numpy.float64) * (1 + ROUNDING * random.standard_normal(array.shape))
            for key, array in subject.weights().items()
        }
        context = agreement.Context(framework, subject, weights, False, None, None, len(arrays[0]))
        numbers = {**agreement.train(context, arrays), "task": golden["task"], "unequal": {}}
        findings = ladder.compare(numbers, golden, task=name, precision="fp32")
        assert ladder.first_difference(findings) is None
