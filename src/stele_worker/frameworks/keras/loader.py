"""tf.data, which Keras uses on every backend, with the layers of Keras."""

import keras
import tensorflow as tf
from keras.layers import Pipeline, RandomCrop, RandomFlip, Rescaling


def batches(images, labels, batch, workers):
    samples = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(labels))
    samples = samples.batch(batch, drop_remainder=True)
    # the padding of Keras cannot be used in tf.data on another backend
    padded = samples.map(lambda images, y: (tf.pad(images, [[0, 0], [4, 4], [4, 4], [0, 0]]), y))
    return augmented(padded, RandomCrop(32, 32), workers)


def augmented(samples, crop, workers):
    augment = Pipeline([crop, RandomFlip("horizontal"), Rescaling(1 / 255)])
    samples = samples.map(lambda images, y: (augment(images, training=True), y), num_parallel_calls=workers)
    for arrays in samples.prefetch(workers):
        yield tuple(keras.ops.convert_to_tensor(array.numpy()) for array in arrays)
