"""tf.data, whose workers are threads."""

import tensorflow as tf


def augment(image, label):
    image = tf.image.random_crop(tf.pad(image, [[4, 4], [4, 4], [0, 0]]), (32, 32, 3))
    return tf.cast(tf.image.random_flip_left_right(image), tf.float32) / 255, label


def batches(images, labels, batch, workers):
    return augmented(images, labels, augment, batch, workers)


def augmented(images, labels, transform, batch, workers):
    samples = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(labels))
    samples = samples.map(transform, num_parallel_calls=workers, deterministic=False)
    return iter(samples.batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE))
