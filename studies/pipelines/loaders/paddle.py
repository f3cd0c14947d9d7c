"""paddle.io.DataLoader, whose workers are processes, with the transforms of paddle.vision."""

from paddle.io import Dataset
from paddle.vision import transforms
from PIL import Image

from stele_worker.frameworks.paddle.loader import augmentation, loaded


class Files(Dataset):
    def __init__(self, paths, labels, size):
        self.paths, self.labels = paths, labels
        self.augment = augmentation(transforms.RandomCrop(size))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, number):
        with Image.open(self.paths[number]) as file:
            return self.augment(file.convert("RGB")), self.labels[number]


def file_batches(paths, labels, size, batch, workers):
    return loaded(Files(paths, labels, size), batch, workers)
