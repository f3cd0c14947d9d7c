"""Switch dropout off in PyTorch, for parity: no two releases draw the same masks."""

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

PLACES = {  # function: (position, name) of the probability
    "dropout": (1, "p"),
    "dropout1d": (1, "p"),
    "dropout2d": (1, "p"),
    "dropout3d": (1, "p"),
    "alpha_dropout": (1, "p"),
    "feature_alpha_dropout": (1, "p"),
    "scaled_dot_product_attention": (4, "dropout_p"),  # since PyTorch 2.0
}
DROPOUT = {getattr(functional, name): place for name, place in PLACES.items() if hasattr(functional, name)}
DROPOUT.update({torch.dropout: (1, "p"), torch.dropout_: (1, "p")})
RATES = {  # class: attribute, of modules that draw their masks in C++ or by hand
    "GRU": "dropout",
    "LSTM": "dropout",
    "RNN": "dropout",
    "DropPath": "drop_prob",  # timm
    "StochasticDepth": "p",  # torchvision
}


class NoDropout(TorchFunctionMode):
    """Set the rate of every dropout function to 0, however the model imported the function."""

    def __torch_function__(self, function, types, arguments=(), named=None):
        named, place = dict(named or {}), DROPOUT.get(function)
        if place is not None and len(arguments) > place[0]:
            arguments = arguments[: place[0]] + (0.0,) + arguments[place[0] + 1 :]
        elif place is not None:
            named[place[1]] = 0.0
        return function(*arguments, **named)


def disable(net):
    """Set the rates of all modules with dropout to 0."""
    for module in net.modules():
        for cls in type(module).__mro__:
            name = RATES.get(cls.__name__, "p" if cls is nn.modules.dropout._DropoutNd else None)
            if name is not None and hasattr(module, name):
                setattr(module, name, 0.0)
