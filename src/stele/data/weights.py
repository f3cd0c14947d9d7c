"""Pretrained ResNet-50 weights: resnet50.safetensors under torchvision's parameter names.

Safetensors holds no code. bfloat16, which NumPy lacks, is widened by hand.
"""

from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from stele.data.errors import DataError
from stele.data.source import Arrays
from stele_worker.tasks import resnet50

FILE = "resnet50.safetensors"
LARGEST = 256 * 2**20  # bytes; 25.6 million parameters in float64 have 205 million
DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


def read(path: Path) -> Arrays:
    """Float32 arrays, named, ordered and shaped like ``resnet50.weights``; DataError otherwise."""
    tensors = _tensors(path)
    arrays: Arrays = {}
    seeded: Any = resnet50.weights
    wanted = seeded(0)
    _check_names(path, set(tensors), set(wanted))
    for name, like in wanted.items():
        arrays[name] = _float32(tensors[name], like.shape, f"{path} ({name})")
    return arrays


def _tensors(path: Path) -> dict[str, dict[str, Any]]:
    import safetensors  # here, so that importing stele stays quick

    if path.stat().st_size > LARGEST:
        raise DataError(f"{path} is larger than ResNet-50 can be.")
    try:
        deserialize: Any = safetensors.deserialize
        return dict(deserialize(path.read_bytes()))
    except safetensors.SafetensorError as problem:
        raise DataError(f"{path} is not a whole safetensors file ({problem}).") from None


def _check_names(path: Path, found: set[str], wanted: set[str]) -> None:
    strange = {name for name in found - wanted if not name.endswith("num_batches_tracked")}
    for what, names in (("lacks", wanted - found), ("has the unknown", strange)):
        if names:
            raise DataError(
                f"{path} {what} {min(names)!r}" + (f" and {len(names) - 1} more." if len(names) > 1 else ".")
            )


def _float32(tensor: dict[str, Any], shape: tuple[int, ...], where: str) -> NDArray[numpy.float32]:
    code, found, data = tensor["dtype"], tuple(tensor["shape"]), tensor["data"]
    if found != shape or code not in (*DTYPES, "BF16"):
        raise DataError(f"{where} is {code} {found} where float32 {shape} belongs.")
    if code == "BF16":  # the upper half of a float32
        values = (numpy.frombuffer(data, "<u2").astype(numpy.uint32) << 16).view(numpy.float32)
    else:
        with numpy.errstate(over="ignore"):  # what overflows is refused below
            values = numpy.frombuffer(data, DTYPES[code]).astype(numpy.float32)
    if not numpy.isfinite(values).all():
        raise DataError(f"{where} holds values that are not finite.")
    return values.reshape(shape)
