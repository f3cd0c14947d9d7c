"""torch.utils.data.DataLoader, whose workers are processes."""

import torch
from torch.nn.functional import pad
from torch.utils.data import DataLoader, Dataset

from stele_worker import frameworks

framework = frameworks.load("torch")


class Images(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = (
            torch.from_numpy(images).permute(0, 3, 1, 2),
            torch.from_numpy(labels).long(),
        )

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, number):
        top, left, flip = torch.randint(9, ()), torch.randint(9, ()), torch.rand(()) < 0.5
        image = pad(self.images[number], (4, 4, 4, 4))[:, top : top + 32, left : left + 32]
        return (image.flip(2) if flip else image).float() / 255, self.labels[number]


def batches(images, labels, batch, workers):
    options = {"num_workers": workers, "pin_memory": framework.device.type == "cuda"}
    for x, y in DataLoader(Images(images, labels), batch, shuffle=True, drop_last=True, **options):
        x, y = (array.to(framework.device, non_blocking=True) for array in (x, y))
        yield x.permute(0, 2, 3, 1).contiguous(), y
