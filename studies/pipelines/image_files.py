"""Image files of 256 x 256 pixels, as a data set of photographs or X-rays has after it was prepared for training."""

from collections.abc import Iterator
from pathlib import Path

import numpy
from PIL import Image

PIXELS = 256
SUFFIXES = (".jpg", ".jpeg", ".png")


def write(folder: Path, images: Iterator[Image.Image], count: int) -> None:
    """Write so many images as JPEG files. Raises ValueError if there are fewer."""
    for number in range(count):
        image = next(images, None)
        if image is None:
            raise ValueError(f"There are only {number} images, but {count} are needed: use --samples {number}")
        resized = image.convert("RGB").resize((PIXELS, PIXELS), Image.Resampling.BICUBIC)
        resized.save(folder / f"{number:06}.jpg", quality=90)


def of_folder(folder: Path) -> Iterator[Image.Image]:
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in SUFFIXES:
            with Image.open(path) as image:
                yield image


def of_array(path: str) -> Iterator[Image.Image]:
    """Yield the images of a .npy file, uint8 (n, height, width, 3)."""
    return map(Image.fromarray, numpy.load(path, mmap_mode="r"))
