"""Read pretrained ResNet-50 weights from resnet50.safetensors with the parameter names of torchvision.

Safetensors files contain no code. bfloat16, which NumPy does not have, is converted here.
"""

from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from stele.data.source import Arrays
from stele.errors import DataError
from stele_suite.tasks import resnet50

FILE = "resnet50.safetensors"
LARGEST = 256 * 2**20  # bytes; 25.6 million parameters in float64 have 205 million
DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


def read(path: Path) -> Arrays:
    """Return float32 arrays with the names, order and shapes of ``resnet50.weights``. Raises DataError otherwise."""
    tensors = _read_tensors(path)
    arrays: Arrays = {}
    seeded: Any = resnet50.weights
    expected = seeded(resnet50.Task())
    _check_names(path, set(tensors), set(expected))
    for name, array in expected.items():
        arrays[name] = _to_float32(tensors[name], array.shape, f"{path} ({name})")
    return arrays


def _read_tensors(path: Path) -> dict[str, dict[str, Any]]:
    import safetensors  # imported here, so that importing stele stays fast

    if path.stat().st_size > LARGEST:
        raise DataError(f"{path} is too large for ResNet-50.")
    try:
        deserialize: Any = safetensors.deserialize
        return dict(deserialize(path.read_bytes()))
    except safetensors.SafetensorError as problem:
        raise DataError(f"{path} is not a complete safetensors file ({problem}).") from None


def _check_names(path: Path, actual: set[str], expected: set[str]) -> None:
    unknown = {name for name in actual - expected if not name.endswith("num_batches_tracked")}
    for what, names in (("does not contain", expected - actual), ("contains the unknown parameter", unknown)):
        if names:
            raise DataError(
                f"{path} {what} {min(names)!r}" + (f" and {len(names) - 1} more." if len(names) > 1 else ".")
            )


def _to_float32(tensor: dict[str, Any], shape: tuple[int, ...], where: str) -> NDArray[numpy.float32]:
    code, actual, data = tensor["dtype"], tuple(tensor["shape"]), tensor["data"]
    if actual != shape or code not in (*DTYPES, "BF16"):
        raise DataError(f"{where} is {code} {actual}, expected float32 {shape}.")
    if code == "BF16":  # the upper half of a float32
        values = (numpy.frombuffer(data, "<u2").astype(numpy.uint32) << 16).view(numpy.float32)
    else:
        with numpy.errstate(over="ignore"):  # an overflow is rejected below
            values = numpy.frombuffer(data, DTYPES[code]).astype(numpy.float32)
    if not numpy.isfinite(values).all():
        raise DataError(f"{where} contains values that are not finite.")
    return values.reshape(shape)
