"""A user's project in TensorFlow without Keras."""

import tensorflow as tf


class TwoInputs(tf.Module):
    def __init__(self):
        super().__init__()
        self.tokens = tf.Variable(tf.random.normal((50, 16)), name="tokens")
        self.weight = tf.Variable(tf.random.normal((8, 16)), name="weight")
        self.again = tf.Variable(tf.random.normal((16, 5)), name="weight")
        self.unused = tf.Variable(tf.zeros((3,)), name="unused")
        self.mean = tf.Variable(tf.zeros((16,)), trainable=False, name="mean")

    def __call__(self, x, ids, training=False):
        x = tf.nn.relu(x @ self.weight) + tf.reduce_mean(tf.gather(self.tokens, ids), 1)
        if training:
            self.mean.assign(0.9 * self.mean + 0.1 * tf.reduce_mean(x, 0))
            x = tf.nn.dropout(x, 0.5)
        return (x - self.mean) @ self.again

    @staticmethod
    def example_inputs():
        return {"x": tf.zeros((4, 8)), "ids": tf.fill((4, 6), 49)}


class Callable:
    """No tf.Module; its variables come with the first call."""

    trainable_variables = ()

    def __call__(self, x, labels=None):
        if not self.trainable_variables:
            self.trainable_variables = [tf.Variable(tf.random.normal((x.shape[1], 3)), name="w")]
        logits = x @ self.trainable_variables[0]
        if labels is None:
            return logits
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    @staticmethod
    def example_inputs():
        return (tf.zeros((6, 10)),)


class Several(tf.Module):
    """Two outputs, and a flag that changes the first."""

    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(tf.random.normal((8, 5)), name="weight")

    def __call__(self, x, is_training=False):
        logits = x @ self.weight
        return {"logits": logits * (2.0 if is_training else 1.0), "boxes": tf.sigmoid(logits)}

    @staticmethod
    def example_inputs():
        return (tf.zeros((4, 8)),)


class Unknown(tf.Module):
    def __call__(self, x):
        return x


def broken():
    raise KeyError("no such width")
