"""tf.data, whose workers are threads."""

import tensorflow as tf

from stele_worker.frameworks.tensorflow.loader import augmented


def file_batches(paths, labels, size, batch, workers):
    def read(path, label):
        image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
        image = tf.image.random_crop(image, (size, size, 3))
        return tf.cast(tf.image.random_flip_left_right(image), tf.float32) / 255, label

    return augmented(paths, labels, read, batch, workers)
