"""CIFAR-10 with augmentation, through the loader of each framework.

Each module has batches(images, labels, batch, workers) -> an iterator over one epoch in random order: float32 images
of the CNN's layout, from 0 to 1, and labels. ``images`` are uint8 (n, 32, 32, 3) and ``labels`` int32 (n,). An image is
padded by 4 pixels of zeros, cropped at random to 32 x 32, and flipped with a probability of one half. ``workers`` is
the number of processes or threads that the loader may use beside its caller.
"""
