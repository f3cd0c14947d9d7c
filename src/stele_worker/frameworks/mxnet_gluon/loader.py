"""gluon.data.DataLoader, whose workers are processes, with the transforms of gluon.data.vision."""

import mxnet as mx
from mxnet.gluon.data import ArrayDataset, DataLoader
from mxnet.gluon.data.vision import transforms

from stele_worker import frameworks

framework = frameworks.load("mxnet_gluon")


class PadAndCrop(mx.gluon.Block):
    def forward(self, image):
        padded = mx.nd.zeros((40, 40, 3), dtype=image.dtype)
        padded[4:36, 4:36] = image
        return mx.image.random_crop(padded, (32, 32))[0]


def batches(images, labels, batch, workers):
    samples = ArrayDataset(images, labels).transform_first(lambda image: mx.nd.array(image, dtype="uint8"))
    return loaded(samples, PadAndCrop(), batch, workers)


def loaded(samples, crop, batch, workers):
    augment = transforms.Compose([crop, transforms.RandomFlipLeftRight(), transforms.ToTensor()])
    samples = samples.transform_first(augment)
    for arrays in DataLoader(samples, batch, shuffle=True, last_batch="discard", num_workers=workers):
        # the workers put them into shared memory
        yield tuple(array.as_in_context(framework.device) for array in arrays)
