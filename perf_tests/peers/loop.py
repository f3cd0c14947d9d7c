"""The networks of some tasks as public code of their frameworks writes them, with which ``peers`` compares the recipes.

    python perf_tests/peers/loop.py PEER TASK THREADS

makes a training step for every line that it reads, and prints its duration in seconds. Each function below returns
step(x, y) for a Task, in the style of the named source, rewritten from its description. The weights are those of the
framework's own initialisation: the mathematics and the sizes are equal, the numbers are not.
"""

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy

sys.path.insert(0, str(Path(__file__).parents[1]))

from answering import answer, configure

from stele_worker import tasks

FRAMEWORK = {
    "torch": "torch",
    "transformers": "torch",
    "flax": "jax",
}  # of a peer; that of the others is Keras


def torch_cnn(task: Any) -> Any:
    """PyTorch's tutorial on CIFAR-10: nn.Sequential, channels first, SGD as it is made."""
    from torch import nn, optim

    net = nn.Sequential(
        nn.Conv2d(3, 50, 3, padding=1), nn.ReLU(), nn.Conv2d(50, 50, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Dropout(task.dropout[0]),
        nn.Conv2d(50, 100, 3, padding=1), nn.ReLU(), nn.Conv2d(100, 100, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
        nn.Dropout(task.dropout[1]), nn.Flatten(),
        nn.Linear(6400, 512), nn.ReLU(), nn.Dropout(task.dropout[2]), nn.Linear(512, 10),
    )  # fmt: skip
    return torch_step(net, optim.SGD(net.parameters(), lr=task.learning_rate, momentum=task.momentum))


def torch_gru(task: Any) -> Any:
    """PyTorch's tutorial on text: nn.Embedding, nn.GRU, Adam as it is made."""
    from torch import nn, optim

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(task.vocabulary, task.embedding)
            self.gru = nn.GRU(task.embedding, task.hidden, batch_first=True)
            self.dense = nn.Linear(task.hidden, 2)

        def forward(self, x: Any) -> Any:
            return self.dense(self.gru(self.embedding(x))[0][:, -1])

    net = Classifier()
    return torch_step(net, optim.Adam(net.parameters(), lr=task.learning_rate))


def torch_step(net: Any, optimizer: Any) -> Any:
    from torch.nn.functional import cross_entropy

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def transformers_encoder(task: Any) -> Any:
    """Hugging Face: BertForSequenceClassification with its own loss, and torch's Adam."""
    from torch import optim
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=task.vocabulary, hidden_size=task.hidden, num_hidden_layers=task.layers, num_labels=task.classes,
        num_attention_heads=task.heads, intermediate_size=task.inner, max_position_embeddings=task.positions,
        hidden_dropout_prob=task.dropout[0], attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    net = BertForSequenceClassification(config).train()
    optimizer = optim.Adam(net.parameters(), lr=task.learning_rate)

    def step(tokens: Any, segments: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = net(tokens, token_type_ids=segments, attention_mask=(tokens != 0).long(), labels=y).loss
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def flax_cnn(task: Any) -> Any:
    """Flax's example on MNIST, with the layers of this task: linen, TrainState, optax."""
    import optax
    from flax import linen as nn

    class CNN(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            for channels, rate in ((50, task.dropout[0]), (100, task.dropout[1])):
                x = nn.relu(nn.Conv(channels, (3, 3))(x))
                x = nn.relu(nn.max_pool(nn.Conv(channels, (3, 3))(x), (2, 2), strides=(2, 2)))
                x = nn.Dropout(rate, deterministic=False)(x)
            x = nn.relu(nn.Dense(512)(x.reshape(x.shape[0], -1)))
            return nn.Dense(10)(nn.Dropout(task.dropout[2], deterministic=False)(x))

    return flax_step(CNN(), optax.sgd(task.learning_rate, task.momentum))


def flax_gru(task: Any) -> Any:
    """Flax's example on text: nn.RNN over nn.GRUCell, optax."""
    import optax
    from flax import linen as nn

    class Classifier(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = nn.RNN(nn.GRUCell(task.hidden))(nn.Embed(task.vocabulary, task.embedding)(x))
            return nn.Dense(2)(x[:, -1])

    return flax_step(Classifier(), optax.adam(task.learning_rate))


def flax_step(net: Any, optimizer: Any) -> Any:
    from functools import partial

    import jax
    import optax
    from flax.training.train_state import TrainState

    @partial(jax.jit, donate_argnums=(0, 1))
    def update(state: Any, key: Any, x: Any, y: Any) -> Any:
        key, own = jax.random.split(key)

        def loss_of(params: Any) -> Any:
            logits = state.apply_fn({"params": params}, x, rngs={"dropout": own})
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        loss, grads = jax.value_and_grad(loss_of)(state.params)
        return state.apply_gradients(grads=grads), key, loss

    made: list[Any] = []

    def step(x: Any, y: Any) -> Any:
        if not made:
            keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
            params = net.init(keys, x)["params"]
            made[:] = TrainState.create(apply_fn=net.apply, params=params, tx=optimizer), jax.random.key(2)
        made[0], made[1], loss = update(*made, x, y)
        return loss

    return step


def keras_cnn(task: Any) -> Any:
    """Keras' example on CIFAR-10: Sequential, compile, train_on_batch."""
    from keras import Sequential, layers, optimizers

    net = Sequential()
    for channels, rate in ((50, task.dropout[0]), (100, task.dropout[1])):
        net.add(layers.Conv2D(channels, 3, padding="same", activation="relu"))
        net.add(layers.Conv2D(channels, 3, padding="same"))
        net.add(layers.MaxPooling2D())
        net.add(layers.ReLU())
        net.add(layers.Dropout(rate))
    net.add(layers.Flatten())
    net.add(layers.Dense(512, activation="relu"))
    net.add(layers.Dropout(task.dropout[2]))
    net.add(layers.Dense(10))
    return keras_step(net, optimizers.SGD(task.learning_rate, momentum=task.momentum))


def keras_gru(task: Any) -> Any:
    """Keras' example on IMDB: Sequential, compile, train_on_batch."""
    from keras import Sequential, layers, optimizers

    net = Sequential(
        [layers.Embedding(task.vocabulary, task.embedding), layers.GRU(task.hidden), layers.Dense(2)]
    )
    return keras_step(net, optimizers.Adam(task.learning_rate))


def keras_step(net: Any, optimizer: Any) -> Any:
    import keras

    net.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return net.train_on_batch


STEPS = {
    "torch cnn": torch_cnn,
    "torch gru": torch_gru,
    "transformers encoder": transformers_encoder,
    "flax cnn": flax_cnn,
    "flax gru": flax_gru,
    "keras cnn": keras_cnn,
    "keras gru": keras_gru,
}


def batches(task: Any, channels_first: bool) -> Any:
    """Return eight batches of seeded noise in the form of the task: the inputs in order, then the target."""
    rng, count = numpy.random.RandomState(0), 8
    if task.name == "cnn":
        x = rng.uniform(-1, 1, (count, task.batch, 32, 32, 3)).astype(numpy.float32)
        x = x.transpose(0, 1, 4, 2, 3).copy() if channels_first else x
        return list(zip(x, rng.randint(0, 10, (count, task.batch)).astype(numpy.int32), strict=True))
    if task.name == "gru":
        x = rng.randint(0, task.vocabulary, (count, task.batch, task.length)).astype(numpy.int32)
        return list(zip(x, rng.randint(0, 2, (count, task.batch)).astype(numpy.int32), strict=True))
    arrays = tasks.load(task.name).example(task, count * task.batch)
    return list(zip(*(array.reshape(count, task.batch, *array.shape[1:]) for array in arrays), strict=True))


def main(peer: str, task_name: str, threads: str) -> None:
    framework = configure(FRAMEWORK.get(peer, "keras"), threads)
    task = tasks.make(task_name, "gate")
    step = STEPS[f"{peer} {task_name}"](task)
    put = (lambda array: array) if peer == "keras" else framework.put  # train_on_batch takes NumPy arrays
    rows = [tuple(map(put, batch)) for batch in batches(task, channels_first=peer == "torch")]
    answer(framework, step, itertools.cycle(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
