"""The code of the authors as modules, with the changes that a new PyTorch, or a processor, needs.

The code is executed; nothing of it is part of this project.
"""

import re
import types

import torch

# spellings of PyTorch 1.0, whose convolutions return contiguous images, of Python 3.7 and of NumPy 1.19; and what is
# not used
OLD_SPELLINGS = (
    (r"add_\((\w+), (\w+)\)", r"add_(\2, alpha=\1)"),
    (r"torch\.symeig\((\w+|Σ), eigenvectors=True\)", r"torch.linalg.eigh(\1)"),
    (r"(x\.permute\(.*\))", r"\1.contiguous()"),
    (r"np\.float\b", "float"),
    (r"import pandas as pd\n", ""),
    (r" is 1:", " == 1:"),
    (r"(?m)^import torchvision.*$", ""),
)
# float32 on a processor without a compiler
EXACT = (
    (r"torch\.cuda\.synchronize\b(\(\))?", "None"),
    (r"\.cuda\(\)", ""),
    (r"@torch.compile\n", ""),
    (r"\.half\(\)|\.bfloat16\(\)", ".float()"),
    (r"\.float16", ".float32"),
)


def module(name, text, *, exact=True, changes=()):
    """Return the module that the text of a file makes, with ``changes`` of patterns.

    With ``exact``, it computes in float32 without a compiler.
    """
    for pattern, replacement in (*changes, *OLD_SPELLINGS, *(EXACT if exact else ())):
        text = re.sub(pattern, replacement, text)
    made = types.ModuleType(name)
    exec(compile(text, name, "exec"), made.__dict__)
    return made


def fill(net, arrays):
    held = net.state_dict()
    for name, array in arrays.items():
        held[name].copy_(torch.from_numpy(array))
