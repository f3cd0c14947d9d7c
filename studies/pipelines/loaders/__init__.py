"""Image files with augmentation, through the loader of each framework. ``stele_worker.loaders`` has CIFAR-10 in memory.

file_batches(paths, labels, size, batch, workers)
    Return an iterator over one epoch in random order: float32 images of the recipe's layout, from 0 to 1, and labels,
    both on the device. ``paths`` are files of 256 x 256 pixels, which are read and decoded in each epoch; ``labels``
    are float32 (n, labels). An image is cropped at random to ``size`` x ``size``, and flipped with a probability of one
    half. ``workers`` is the number of processes or threads that the loader may use beside its caller.
"""
