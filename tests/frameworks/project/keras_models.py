"""A user's project in Keras 3."""

import keras
from keras import layers


def two_inputs():
    x, ids = keras.Input((8,)), keras.Input((None,), dtype="int32")
    tokens = layers.GlobalAveragePooling1D()(layers.Embedding(50, 16)(ids))
    return keras.Model([x, ids], layers.Dense(5)(layers.Add()([layers.Dense(16)(x), tokens])))


def named():
    x, ids = keras.Input((8,), name="x"), keras.Input((6,), dtype="int32", name="ids")
    tokens = layers.Flatten()(layers.Embedding(50, 4)(ids))
    return keras.Model({"x": x, "ids": ids}, layers.Dense(5)(layers.Concatenate()([x, tokens])))


def image():
    return keras.Sequential(
        [
            keras.Input((16, 16, 3)),
            layers.Conv2D(8, 3),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Dropout(0.5),
            layers.Flatten(),
            layers.Dense(7, activation="softmax"),
        ]
    )


def recurrent():
    return keras.Sequential(
        [
            keras.Input((10, 8)),
            layers.GRU(16, return_sequences=True, dropout=0.5, recurrent_dropout=0.2, name="gru"),
            layers.Dropout(0.2),
            layers.Dense(5),
        ]
    )


class Penalty(layers.Layer):
    def call(self, x):
        self.add_loss(0.1 * keras.ops.mean(keras.ops.square(x)))
        return x


def regularised():
    """Layers that add to the loss."""
    dense = layers.Dense(16, kernel_regularizer="l2", activity_regularizer="l1")
    return keras.Sequential([keras.Input((8,)), dense, Penalty(), layers.Dense(5)])


def nested():
    """Sequential models inside of a functional one, with layers of equal shapes."""
    x = keras.Input((12, 8))
    block = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dense(8), layers.LayerNormalization()])
    y = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(block(x) + x)
    y = layers.SeparableConv1D(8, 3)(layers.MultiHeadAttention(2, 4)(y, y))
    return keras.Model(x, keras.Sequential([layers.GlobalAveragePooling1D(), layers.Dense(6)])(y))


class Subclassed(keras.Model):
    """Takes its inputs one by one."""

    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(16)
        self.attention = layers.MultiHeadAttention(2, 8, dropout=0.5)
        self.head = layers.Dense(5)

    def call(self, left, right, training=False):
        x = self.dense(left)
        return self.head(self.attention(x, self.dense(right), training=training))

    @staticmethod
    def example_inputs():
        return keras.ops.zeros((4, 6, 8)), keras.ops.zeros((4, 3, 8))


class Unknown(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(3)

    def call(self, inputs):
        return self.dense(inputs)


def mobile():
    return keras.applications.MobileNet(input_shape=(32, 32, 3), alpha=0.25, weights=None, classes=5)


def heads():
    """Two outputs; the loss of the first does not reach the second."""
    x = keras.Input((8,))
    return keras.Model(x, [layers.Dense(5)(x), layers.Dense(4)(x)])


def compiled(loss="mse", optimizer="adam"):
    net = keras.Sequential([keras.Input((8,)), layers.Dense(5)])
    net.compile(optimizer, loss)
    return net


def labelled():
    return compiled(keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.optimizers.SGD(0.5))


def unknown_loss():
    return compiled(lambda target, output: output[:, 0])


class Flags(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(3)

    def call(self, inputs, train=False, training=False):
        return self.dense(inputs) * (3 if train else 2 if training else 1)

    @staticmethod
    def example_inputs():
        return keras.ops.zeros((4, 6))


class OwnStep(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(3)

    def call(self, inputs):
        return self.dense(inputs)

    def train_step(self, *data):
        raise NotImplementedError

    @staticmethod
    def example_inputs():
        return keras.ops.zeros((4, 6))


class Decay(layers.Layer):
    """Its rate is no dropout."""

    rate = None

    def __init__(self):
        super().__init__()
        self.rate = 0.5

    def call(self, x):
        return x * self.rate


class OwnDropout(layers.Dropout):
    pass


def rates():
    return keras.Sequential([keras.Input((8,)), layers.Dense(5), Decay(), OwnDropout(0.5)])


built = image()


def broken():
    raise KeyError("no such width")
