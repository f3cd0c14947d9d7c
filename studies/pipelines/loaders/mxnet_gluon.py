"""gluon.data.DataLoader, whose workers are processes, with the transforms of gluon.data.vision."""

import mxnet as mx
from mxnet.gluon.data import Dataset

from stele_worker.frameworks.mxnet_gluon.loader import loaded


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


def file_batches(paths, labels, size, batch, workers):
    return loaded(Files(paths, labels), Crop(size), batch, workers)
