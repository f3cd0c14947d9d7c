"""Keras' examples: Sequential, compile, train_on_batch and predict_on_batch, which take NumPy arrays."""

from keras import Sequential, layers, losses, optimizers


def cnn(task):
    """The example on CIFAR-10, with the layers of this task."""
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
    return net, optimizers.SGD(task.learning_rate, momentum=task.momentum)


def gru(task):
    """The example on IMDB."""
    net = Sequential([layers.Embedding(task.vocabulary, task.embedding), layers.GRU(task.hidden), layers.Dense(2)])
    return net, optimizers.Adam(task.learning_rate)


def training_step(net, optimizer):
    net.compile(optimizer, losses.SparseCategoricalCrossentropy(from_logits=True))
    return net.train_on_batch


def inference_step(net):
    return net.predict_on_batch
