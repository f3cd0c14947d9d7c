"""The environment variables of the user that decide what a framework computes, or how fast.

Workers inherit all variables of the user. Those of frameworks are known by their names, and kept with their values,
except one that may be a secret. Of those that the code of a model asks for, the worker says the names, and a hash is
kept.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping

# of frameworks, their compilers and libraries, the C library, and Python. Not what Stele reads itself
DECIDING = re.compile(
    r"(KERAS|XLA|JAX|TF|TENSORFLOW|TORCH|TORCHINDUCTOR|TORCHDYNAMO|PYTORCH|FLAGS|PADDLE|MXNET|CHAINER|ORT|OPENVINO|FLAX"
    r"|OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|NUMEXPR|VECLIB|DNNL|ONEDNN|ATEN|LRU_CACHE|NPY|NUMPY|NUMBA|TRITON|CUDA|CUBLAS|CUDNN"
    r"|NVIDIA|NCCL|HIP|ROCR|HF|TRANSFORMERS|MALLOC|JEMALLOC|TCMALLOC|MIMALLOC)_?\w*"
    r"|GLIBC_TUNABLES|LD_PRELOAD|LD_LIBRARY_PATH|NPROC|PYTHONOPTIMIZE|PYTHONMALLOC|PYTHON_GIL|PYTHON_JIT|PYTHONUTF8",
)
SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL")
# they concern messages, progress, downloads, where files are kept, and Terraform; or Stele sets them, as a setting
HARMLESS = re.compile(
    r"TF_CPP_MIN_LOG_LEVEL|TF_CPP_MAX_VLOG_LEVEL|TF_CLI_\w+|TF_VAR_\w+|TF_DATA_DIR|TORCH_LOGS|TORCH_HOME|TORCH_CUDA_ARCH_LIST"
    r"|HF_HOME|HF_HUB_\w+|HF_ENDPOINT|TRANSFORMERS_CACHE|TRANSFORMERS_OFFLINE|TRANSFORMERS_VERBOSITY|KERAS_HOME"
    r"|CUDA_HOME|CUDA_PATH|NVIDIA_DRIVER_CAPABILITIES"
    r"|(OMP|OPENBLAS|MKL|NUMEXPR)_NUM_THREADS",
)
SETTINGS = re.compile(r"(OMP|OPENBLAS|MKL|NUMEXPR)_NUM_THREADS")
GIVEN = re.compile(r"\w+_VISIBLE_DEVICES")  # a fleet gives each launch a device
# of a terminal, a session, a shell or a run of CI; and where programs, temporary files and messages are
PASSING = re.compile(
    r"TERM\w*|COLORTERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|CLICOLOR\w*|LS_COLORS|DISPLAY|WAYLAND_DISPLAY|WINDOWID|VTE_\w+"
    r"|PWD|OLDPWD|SHLVL|_|SHELL|USER|LOGNAME|USERNAME|MAIL|EDITOR|VISUAL|PAGER|LESS\w*|PS\d|PROMPT_\w+|HIST\w+|TMUX\w*|STY"
    r"|XDG_\w+|DBUS_\w+|SSH_\w+|GPG_\w+|VSCODE_\w+|INVOCATION_ID|JOURNAL_STREAM|VIRTUAL_ENV\w*|CONDA_\w+|PYTEST_\w+|STELE_\w+"
    r"|CI|CI_\w+|GITHUB_\w+|GITLAB_\w+|JENKINS_\w+|RUNNER_\w+|BUILD_\w+|JOB_\w+|\w+_PROXY|\w+_proxy"
    r"|PATH|TF_CPP_MIN_LOG_LEVEL|TF_CPP_MAX_VLOG_LEVEL|TMPDIR|TEMP|TMP|LANG|LANGUAGE|LC_\w+|PYTHON(PATH|HASHSEED|DONTWRITEBYTECODE|UNBUFFERED|WARNINGS|FAULTHANDLER)",
)
ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc")


def deciding(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of the user that decide what is measured, by name."""
    return {
        name: value
        for name, value in sorted(variables.items())
        if DECIDING.fullmatch(name) and not HARMLESS.fullmatch(name) and not SECRET.search(name)
    }


def portable() -> dict[str, str]:
    """Return those that decide the same on another machine: they do not choose one of its devices."""
    return {name: value for name, value in deciding().items() if not GIVEN.fullmatch(name)}


def variable_hashes(names: Iterable[str], variables: Mapping[str, str] = os.environ) -> dict[str, str | None]:
    """Return a hash of each variable that may decide something, by name; None if it is not set."""
    return {
        name: None if name not in variables else hashlib.sha256(os.fsencode(variables[name])).hexdigest()[:16]
        for name in sorted(set(names))
        if not PASSING.fullmatch(name) and not SETTINGS.fullmatch(name)
    }


def allocator(variables: Mapping[str, str] = os.environ) -> str:
    """Return the allocator that the user's variables preload, or that of the C library."""
    preloaded = variables.get("LD_PRELOAD", "")
    return next((name for name in ALLOCATORS if name in preloaded), "that of the C library")
