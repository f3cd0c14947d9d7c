"""torch.utils.data.DataLoader, whose workers are processes."""

import numpy
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Files(Dataset):
    def __init__(self, paths, labels, size):
        self.paths, self.labels, self.size = paths, torch.from_numpy(labels), size

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, number):
        with Image.open(self.paths[number]) as file:
            image = torch.from_numpy(numpy.array(file.convert("RGB")))
        top, left = torch.randint(len(image) - self.size + 1, (2,))
        image = image[top : top + self.size, left : left + self.size]
        return (image.flip(1) if torch.rand(()) < 0.5 else image).float() / 255, self.labels[number]


def file_batches(paths, labels, size, batch, workers):
    files = Files(paths, labels, size)
    return iter(DataLoader(files, batch, shuffle=True, num_workers=workers, drop_last=True))
