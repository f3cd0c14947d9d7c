"""keras.utils.image_dataset_from_directory, which uses tf.data on every backend, with the layers of Keras."""

from pathlib import Path

import keras

PIXELS = 256  # of a file


def file_batches(paths, labels, size, batch, workers):
    """``paths`` are all files of one folder, in order. ``workers``: TensorFlow chooses the number of threads."""
    numbers = list(range(len(paths)))  # the function takes one integer of each file
    samples = keras.utils.image_dataset_from_directory(
        Path(paths[0]).parent, numbers, image_size=(PIXELS, PIXELS), batch_size=batch, seed=0, verbose=False
    )
    augment = keras.layers.Pipeline(
        [
            keras.layers.RandomCrop(size, size),
            keras.layers.RandomFlip("horizontal"),
            keras.layers.Rescaling(1 / 255),
        ]
    )
    samples = samples.map(
        lambda images, rows: (augment(images, training=True), rows), num_parallel_calls=workers
    )
    for images, rows in samples.prefetch(workers):
        yield keras.ops.convert_to_tensor(images.numpy()), keras.ops.convert_to_tensor(labels[rows.numpy()])
