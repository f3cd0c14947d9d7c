"""The environment variables of the user that decide what a framework computes, or how fast.

Workers inherit all variables of the user. A name is kept with its value, except one that may be a secret.
"""

import os
import re
from collections.abc import Mapping

# of frameworks, their compilers and libraries, the C library, and Python. Not what Stele reads itself
DECIDING = re.compile(
    r"(KERAS|XLA|JAX|TF|TENSORFLOW|TORCH|TORCHINDUCTOR|TORCHDYNAMO|PYTORCH|FLAGS|PADDLE|MXNET|CHAINER|ORT|OPENVINO|FLAX"
    r"|OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|NUMEXPR|VECLIB|DNNL|ONEDNN|ATEN|LRU_CACHE|NPY|NUMPY|NUMBA|TRITON|CUDA|CUBLAS|CUDNN"
    r"|NVIDIA|NCCL|HIP|ROCR|HF|TRANSFORMERS|MALLOC|JEMALLOC|TCMALLOC|MIMALLOC)_?\w*"
    r"|GLIBC_TUNABLES|LD_PRELOAD|LD_LIBRARY_PATH|NPROC|PYTHONOPTIMIZE|PYTHONMALLOC|PYTHON_GIL|PYTHON_JIT",
)
SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL")
# they concern messages, progress, downloads, where files are kept, and Terraform; or Stele sets them, as a setting
HARMLESS = re.compile(
    r"TF_CPP_MIN_LOG_LEVEL|TF_CPP_MAX_VLOG_LEVEL|TF_CLI_\w+|TF_VAR_\w+|TF_DATA_DIR|TORCH_LOGS|TORCH_HOME|TORCH_CUDA_ARCH_LIST"
    r"|HF_HOME|HF_HUB_\w+|HF_ENDPOINT|TRANSFORMERS_CACHE|TRANSFORMERS_OFFLINE|TRANSFORMERS_VERBOSITY|KERAS_HOME"
    r"|CUDA_HOME|CUDA_PATH|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|NVIDIA_DRIVER_CAPABILITIES"
    r"|(OMP|OPENBLAS|MKL|NUMEXPR)_NUM_THREADS",
)
ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc")


def deciding(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of the user that decide what is measured, by name."""
    return {
        name: value
        for name, value in sorted(variables.items())
        if DECIDING.fullmatch(name) and not HARMLESS.fullmatch(name) and not SECRET.search(name)
    }


def allocator(variables: Mapping[str, str] = os.environ) -> str:
    """Return the allocator that the user's variables preload, or that of the C library."""
    preloaded = variables.get("LD_PRELOAD", "")
    return next((name for name in ALLOCATORS if name in preloaded), "that of the C library")
