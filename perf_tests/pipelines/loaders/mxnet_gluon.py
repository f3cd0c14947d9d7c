"""gluon.data.DataLoader, whose workers are processes, with the transforms of gluon.data.vision."""

import mxnet as mx
from mxnet.gluon.data import ArrayDataset, DataLoader, Dataset
from mxnet.gluon.data.vision import transforms


class PadAndCrop(mx.gluon.Block):
    def forward(self, image):
        padded = mx.nd.zeros((40, 40, 3), dtype=image.dtype)
        padded[4:36, 4:36] = image
        return mx.image.random_crop(padded, (32, 32))[0]


class Crop(mx.gluon.Block):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, image):
        return mx.image.random_crop(image, (self.size, self.size))[0]


class Files(Dataset):
    def __init__(self, paths, labels):
        self.paths, self.labels = paths, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, number):
        return mx.image.imread(self.paths[number]), self.labels[number]


def batches(images, labels, batch, workers):
    samples = ArrayDataset(images, labels).transform_first(lambda image: mx.nd.array(image, dtype="uint8"))
    return loaded(samples, PadAndCrop(), batch, workers)


def file_batches(paths, labels, size, batch, workers):
    return loaded(Files(paths, labels), Crop(size), batch, workers)


def loaded(samples, crop, batch, workers):
    augment = transforms.Compose([crop, transforms.RandomFlipLeftRight(), transforms.ToTensor()])
    samples = samples.transform_first(augment)
    for arrays in DataLoader(samples, batch, shuffle=True, last_batch="discard", num_workers=workers):
        # the workers put them into shared memory
        yield tuple(array.as_in_context(mx.cpu()) for array in arrays)
