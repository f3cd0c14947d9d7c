"""Which accuracy does the author's code of cifar-airbench reach with the images at hand?

    STELE_DATA=DATA python perf_tests/upstream_accuracy.py FOLDER

FOLDER is a clone of github.com/KellerJordan/cifar10-airbench. The code in it is executed; nothing of it is part of this
project. It trains once, in float32, on the processor or on a GPU. Compare its accuracy with that of
``stele time-to-accuracy --task cifar-airbench --scale cpu-full``: images that were compressed cost both the same.
"""

import argparse
import contextlib
import tempfile
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace

import numpy
import torch
from upstream import airbench_module

from stele.measuring import measure
from stele.measuring.settings import DEVICES

# what upstream requires of CUDA, for any device
CHANGES = (
    (r"torch\.cuda\.Event", "Event"),
    (r"torch\.cuda\.synchronize\(\)", "torch.empty(0, device=DEVICE).sum().item()"),
    (r'torch\.device\("cuda"\)', "torch.device(DEVICE)"),
)


class Normalize:
    """torchvision's transform, which is all that upstream needs of torchvision."""

    def __init__(self, mean, deviation):
        self.mean, self.deviation = mean.view(3, 1, 1), deviation.view(3, 1, 1)

    def __call__(self, images):
        return (images - self.mean.to(images.device)) / self.deviation.to(images.device)


class Event:
    """An event of CUDA, on any device: upstream measures its training with two."""

    def __init__(self, enable_timing):
        self.when = 0.0

    def record(self):
        self.when = perf_counter()

    def elapsed_time(self, other):
        return 1e3 * (other.when - self.when)


def load(folder, device):
    """Return upstream's module for a device."""
    loaded = airbench_module(folder, CHANGES)
    loaded.__dict__.update(DEVICE=device, Event=Event, T=SimpleNamespace(Normalize=Normalize))
    return loaded


def write_images(folder):
    """Write the data set as upstream stores it."""
    paths = measure.inputs("cifar-airbench")[0]["data"]
    for split in ("train", "test"):
        images, labels = (torch.from_numpy(numpy.load(paths[f"{split}_{part}"])) for part in ("x", "y"))
        torch.save({"images": images, "labels": labels.long(), "classes": []}, folder / f"{split}.pt")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a clone of upstream's repository")
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    arguments = parser.parse_args()
    upstream = load(arguments.folder, arguments.device)
    torch.manual_seed(arguments.seed)
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "cifar10"
        data.mkdir()
        write_images(data)
        net = upstream.CifarNet().to(arguments.device, memory_format=torch.channels_last)
        with contextlib.chdir(place):
            print(f"accuracy: {upstream.main(arguments.seed, net):.2%}")


if __name__ == "__main__":
    main()
