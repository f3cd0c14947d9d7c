"""paddle.io.DataLoader, whose workers are processes, with the transforms of paddle.vision."""

from paddle.io import DataLoader, Dataset
from paddle.vision import transforms
from PIL import Image


class Images(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels
        self.augment = augmentation(transforms.RandomCrop(32, padding=4))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, number):
        return self.augment(Image.fromarray(self.images[number])), self.labels[number]


def augmentation(crop):
    """Return augment(image), which gives an array (channel, height, width) from 0 to 1.

    ToTensor computes with Paddle, and a process of the loader that does so sometimes ends with SIGSEGV.
    """
    augment = transforms.Compose([crop, transforms.RandomHorizontalFlip(), transforms.Transpose()])
    return lambda image: augment(image).astype("float32") / 255


def batches(images, labels, batch, workers):
    return loaded(Images(images, labels), batch, workers)


def loaded(samples, batch, workers):
    return iter(DataLoader(samples, batch_size=batch, shuffle=True, drop_last=True, num_workers=workers))
