"""Keras' own function, which reads the files with tf.data, with the layers of Keras."""

from pathlib import Path

import keras
from keras.layers import RandomCrop

from stele_worker.frameworks.keras.loader import augmented

PIXELS = 256  # of a file


def file_batches(paths, labels, size, batch, workers):
    """``paths`` are all files of one folder, in order."""
    numbers = list(range(len(paths)))  # the function takes one integer of each file
    samples = keras.utils.image_dataset_from_directory(
        Path(paths[0]).parent, numbers, image_size=(PIXELS, PIXELS), batch_size=batch, seed=0, verbose=False
    )
    for images, rows in augmented(samples, RandomCrop(size, size), workers):
        yield images, keras.ops.convert_to_tensor(labels[keras.ops.convert_to_numpy(rows)])
