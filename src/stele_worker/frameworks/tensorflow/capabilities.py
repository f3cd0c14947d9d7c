"""TensorFlow: gradient tapes, tf.function, SavedModel."""

import tensorflow as tf


def second_derivative():
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        grad = inner.gradient(y, x)
    return outer.gradient(grad, x)


def gradient_penalty():
    w, x = tf.Variable(2.0), tf.Variable(1.5)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = w * x**2
        penalty = (abs(inner.gradient(y, x)) - 1) ** 2
    return outer.gradient(penalty, w)


def hooks():
    raise NotImplementedError("tf.Module and tf.function have no hooks")


def shared_parameter():
    w = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = w * (w * 2.0)
    return tape.gradient(y, w)


def predicted_weight():
    a = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = (a * 3.0) * 5.0
    return y, tape.gradient(y, a)


def control_flow():
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def halvings(x):
        count = 0
        while x > 1:  # AutoGraph turns this into a tf.while_loop
            x, count = x / 2, count + 1
        return count

    return [halvings(tf.constant(value)) for value in (100.0, 3.0)]


def dynamic_batch():
    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.float32)])
    def run(x):
        return 3 * x

    for batch in (2, 3, 5):
        run(tf.zeros((batch, 1)))
    return run.experimental_get_tracing_count()


class Tripling(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(3.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.float32)])
    def __call__(self, x):
        return self.w * x


def saved_model(folder):
    tf.saved_model.save(Tripling(), folder)
    return tf.saved_model.load(folder)(tf.constant([[2.0]]))
