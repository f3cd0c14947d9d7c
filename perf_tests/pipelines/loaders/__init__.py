"""Images with augmentation, through the loader of each framework.

Each function returns an iterator over one epoch in random order: float32 images of the recipe's layout, from 0 to 1,
and labels, both on the device. ``workers`` is the number of processes or threads that the loader may use beside its
caller.

batches(images, labels, batch, workers)
    CIFAR-10 in memory: ``images`` are uint8 (n, 32, 32, 3) and ``labels`` int32 (n,). An image is padded by 4 pixels of
    zeros, cropped at random to 32 x 32, and flipped with a probability of one half.
file_batches(paths, labels, size, batch, workers)
    Image files of 256 x 256 pixels, which are read and decoded in each epoch: ``labels`` are float32 (n, labels). An
    image is cropped at random to ``size`` x ``size``, and flipped with a probability of one half.
"""
