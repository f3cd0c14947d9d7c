"""Flax's examples: linen, TrainState, and optimizers of optax."""

from functools import partial

import jax
import optax
from flax import linen as nn
from flax.training.train_state import TrainState


def cnn(task):
    """The example on MNIST, with the layers of this task."""

    class CNN(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            for channels, rate in ((50, task.dropout[0]), (100, task.dropout[1])):
                x = nn.relu(nn.Conv(channels, (3, 3))(x))
                x = nn.relu(nn.max_pool(nn.Conv(channels, (3, 3))(x), (2, 2), strides=(2, 2)))
                x = nn.Dropout(rate, deterministic=not train)(x)
            x = nn.relu(nn.Dense(512)(x.reshape(x.shape[0], -1)))
            return nn.Dense(10)(nn.Dropout(task.dropout[2], deterministic=not train)(x))

    return CNN(), optax.sgd(task.learning_rate, task.momentum)


def gru(task):
    """The example on text: nn.RNN over nn.GRUCell."""

    class Classifier(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            x = nn.RNN(nn.GRUCell(task.hidden))(nn.Embed(task.vocabulary, task.embedding)(x))
            return nn.Dense(2)(x[:, -1])

    return Classifier(), optax.adam(task.learning_rate)


def training_step(net, optimizer):
    @partial(jax.jit, donate_argnums=(0, 1))
    def update(state, key, x, y):
        key, own = jax.random.split(key)

        def loss_of(params):
            logits = state.apply_fn({"params": params}, x, train=True, rngs={"dropout": own})
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        loss, grads = jax.value_and_grad(loss_of)(state.params)
        return state.apply_gradients(grads=grads), key, loss

    made = []

    def step(x, y):
        if not made:
            keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
            params = net.init(keys, x, train=True)["params"]
            made[:] = TrainState.create(apply_fn=net.apply, params=params, tx=optimizer), jax.random.key(2)
        made[0], made[1], loss = update(*made, x, y)
        return loss

    return step


def inference_step(net):
    predict, made = jax.jit(partial(net.apply, train=False)), []

    def step(x):
        if not made:
            made.append(net.init(jax.random.key(0), x, train=False))
        return predict(made[0], x)

    return step
