"""ResNet-9 in Keras 3: functional; Keras' documented loop, compiled where that is faster."""

import weakref

import keras
import numpy
from keras import layers, ops

from stele_suite.tasks import cifar_fast
from stele_suite.tasks.cifar_fast import AVERAGE_EVERY, AVERAGE_KEEPS, POOLED, choices
from stele_worker.frameworks.keras.images import channel_axis, image_input, per_channel
from stele_worker.frameworks.keras.network import parameters
from stele_worker.frameworks.keras.recipe import (
    KerasRecipe,
    compile_function,
    from_arrays,
    plain,
    seen_by_optimiser,
    set_policy,
    to_arrays,
)


class Norm(layers.Layer):
    """Batch normalisation in float32, of the whole batch or of its ghost batches; the scale may be frozen at 1."""

    def __init__(self, task, **options):
        super().__init__(**options)
        self.epsilon, self.rate, self.chosen = task.epsilon, task.statistics, choices(task)

    def build(self, shape):
        channels = {"shape": (shape[channel_axis()],), "dtype": "float32"}
        trained = self.chosen.trains_scale
        self.scale = self.add_weight(name="weight", initializer="ones", **channels) if trained else None
        self.shift = self.add_weight(name="bias", initializer="zeros", **channels)
        fixed = dict(channels, trainable=False)
        self.mean = self.add_weight(name="running_mean", initializer="zeros", **fixed)
        self.variance = self.add_weight(name="running_var", initializer="ones", **fixed)

    def call(self, x, training=False):
        dtype, shape, mean, variance = (
            x.dtype,
            ops.shape(x),
            per_channel(self.mean),
            per_channel(self.variance),
        )
        x = ops.cast(x, "float32")
        if training:
            ghost = self.chosen.ghost or shape[0]
            x = ops.reshape(x, (ghost, shape[0] // ghost, *shape[1:]))  # image i is in group i modulo groups
            mean, variance = ops.moments(x, (0, 3, 4) if channel_axis() == 1 else (0, 2, 3), keepdims=True)
            count = ghost * shape[2] ** 2  # images are square
            for value, of_groups in ((self.mean, mean), (self.variance, variance * count / (count - 1))):
                of_batch = ops.reshape(ops.mean(of_groups, 1), (-1,))
                value.assign(value + self.rate * (of_batch - value))
        scale = ops.rsqrt(variance + self.epsilon)
        scale = scale if self.scale is None else scale * per_channel(self.scale)
        x = (x - mean) * scale + per_channel(self.shift)
        return ops.cast(ops.reshape(x, shape), dtype)


def convolve(x, channels, size, name, trainable=True):
    convolution = layers.Conv2D(channels, size, padding="same", use_bias=False, name=name, trainable=trainable)
    return convolution(x)


def layer(x, task, name):
    """Apply a convolution, its normalisation, the activation, and the pool of some layers."""
    chosen = choices(task)
    inputs, channels = next(sizes for one, *sizes in cifar_fast.layers(task) if one == name)
    x = convolve(x, channels, 1 if inputs == 27 else 3, plain(name) + "_conv")
    if name in POOLED and chosen.pool_first:
        x = layers.MaxPooling2D(2)(x)
    x = Norm(task, name=plain(name) + "_norm")(x)
    x = ops.celu(x, chosen.alpha) if chosen.alpha else ops.relu(x)
    if name in POOLED and not chosen.pool_first:
        x = layers.MaxPooling2D(2)(x)
    return layers.Identity(name=plain(name))(x)


class Rates(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of each step, from a table."""

    def __init__(self, task):
        self.rates = cifar_fast.learning_rates(task)

    def __call__(self, step):
        rates = ops.convert_to_tensor(self.rates)
        return ops.take(rates, ops.minimum(ops.cast(step, "int32"), len(self.rates) - 1))


class Nesterov(keras.optimizers.SGD):
    """Keras' Nesterov momentum, which has the learning rate inside the velocity, with the Task's decay.

    ``own`` has (factor of the learning rate, decay) of each variable by its id.
    """

    def __init__(self, task, own):
        super().__init__(Rates(task), momentum=task.momentum, nesterov=True)
        self.own = own

    def update_step(self, gradient, variable, learning_rate):
        factor, decay = self.own[id(variable)]
        gradient = gradient + decay * ops.cast(variable, gradient.dtype)
        super().update_step(gradient, variable, factor * learning_rate)


def assign_all(net, values):
    for variable, value in zip(net.weights, values):
        variable.assign(value)


def moved(averages, values):
    return [AVERAGE_KEEPS * old + (1 - AVERAGE_KEEPS) * new for old, new in zip(averages, values)]


class Recipe(KerasRecipe):
    LAYOUT = "NHWC"

    def __init__(self, framework):
        super().__init__(framework)
        self.averages = (
            weakref.WeakKeyDictionary()
        )  # network -> the same with the average of its weights and statistics

    def network(self, task):
        set_policy(task)
        images, x = image_input(32, task)
        if choices(task).whitens:
            x = convolve(x, 27, 3, "whiten", trainable=False)  # (batch, 32, 32, 27)
        for name in ("prep", "layer1", "layer2", "layer3"):  # (batch, 32, 32, 64) to (batch, 4, 4, 512)
            x = layer(x, task, name)
            if name in cifar_fast.RESIDUAL:
                x = layers.Add()([x, layer(layer(x, task, name + ".residual1"), task, name + ".residual2")])
        x = layers.Flatten()(layers.MaxPooling2D(4)(x))
        x = layers.Dense(10, use_bias=False, name="linear")(x)
        return keras.Model(images, ops.cast(x, "float32") * choices(task).factor)  # (batch, 10)

    def predict(self, net, task, images):
        """Return logits, or the mean with those of the mirror image."""
        logits = net.outputs[0]
        return (logits + net(ops.flip(images, 2))) / 2 if choices(task).flips else logits

    def layers(self, task):
        return [name for name, *_ in cifar_fast.layers(task)]

    def loss(self, task, output, y):
        """Return the mean cross-entropy, with smoothed labels."""
        smoothing, logarithms = choices(task).smoothing, ops.log_softmax(output)
        right = ops.mean(ops.take_along_axis(logarithms, y[..., None], axis=-1))
        return -(1 - smoothing) * right - smoothing * ops.mean(logarithms)

    def optimiser(self, net, task):
        own = {
            id(key): cifar_fast.rate_and_decay(task, self.name_of(variable))
            for variable in net.weights
            for key in seen_by_optimiser(variable)
        }
        return Nesterov(task, own)

    def layout(self, name, array):
        return array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T  # (height, width, in, out)

    def training_step(self, net, task):
        update, steps = super().training_step(net, task), 0
        if not choices(task).average:
            return update
        average = self.averages[net] = self.network(task)
        # copies, because JAX' training step gives the memory of the network's arrays to their successors
        assign_all(average, [self.framework.fetch(value) for value in parameters(net)])
        move = compile_function(net, moved)

        def step(*arrays):
            nonlocal steps
            value = update(*arrays)
            steps += 1
            if steps % AVERAGE_EVERY == 1:
                assign_all(average, move([variable.value for variable in average.weights], parameters(net)))
            return value

        def state():
            averages = to_arrays(average.weights, "average.")
            return dict(update.state(), steps=numpy.array(steps), **averages)

        def restore(saved):
            nonlocal steps
            update.restore(saved)
            from_arrays(average.weights, saved, "average.")
            steps = int(saved["steps"])

        step.state, step.restore = state, restore
        return step

    def inference_step(self, net, task):
        return super().inference_step(self.averages.get(net, net), task)
