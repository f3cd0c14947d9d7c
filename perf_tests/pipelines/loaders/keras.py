"""tf.data, which Keras uses on every backend, with the layers of Keras; Keras' own function reads the files."""

from pathlib import Path

import keras
import tensorflow as tf
from keras.layers import Pipeline, RandomCrop, RandomFlip, Rescaling

PIXELS = 256  # of a file


def batches(images, labels, batch, workers):
    samples = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(labels))
    samples = samples.batch(batch, drop_remainder=True)
    # the padding of Keras cannot be used in tf.data on another backend
    padded = samples.map(lambda images, y: (tf.pad(images, [[0, 0], [4, 4], [4, 4], [0, 0]]), y))
    return augmented(padded, RandomCrop(32, 32), workers)


def file_batches(paths, labels, size, batch, workers):
    """``paths`` are all files of one folder, in order."""
    numbers = list(range(len(paths)))  # the function takes one integer of each file
    samples = keras.utils.image_dataset_from_directory(
        Path(paths[0]).parent, numbers, image_size=(PIXELS, PIXELS), batch_size=batch, seed=0, verbose=False
    )
    for images, rows in augmented(samples, RandomCrop(size, size), workers):
        yield images, keras.ops.convert_to_tensor(labels[keras.ops.convert_to_numpy(rows)])


def augmented(samples, crop, workers):
    augment = Pipeline([crop, RandomFlip("horizontal"), Rescaling(1 / 255)])
    samples = samples.map(lambda images, y: (augment(images, training=True), y), num_parallel_calls=workers)
    for arrays in samples.prefetch(workers):
        yield tuple(keras.ops.convert_to_tensor(array.numpy()) for array in arrays)
