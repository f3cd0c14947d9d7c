"""Construct the optimizer that the user names as "module:Class"."""

import importlib
import inspect

from stele_worker.models import specs
from stele_worker.models.errors import SpecError

RATE = 1e-3  # where a class has no learning rate of its own
RATES = ("lr", "learning_rate")


def construct(text, *arguments, **named):
    """Return the optimizer with its defaults; a required learning rate is 1e-3. Raise SpecError if unknown."""
    module, _, name = text.partition(":")
    if not name:
        raise SpecError(
            "The optimizer {!r} is not written as module:Class, such as torch.optim:AdamW.".format(text)
        )
    try:
        module = importlib.import_module(module)
    except ImportError as error:
        raise SpecError("The optimizer {!r} cannot be imported: {}".format(text, error)) from error
    factory = specs.attribute(module, name, text)
    return factory(*arguments, **dict(required_rate(factory), **named))


def required_rate(factory):
    """Return {"lr": 1e-3} if the factory requires a learning rate of that name; else {}."""
    try:
        parameters = inspect.signature(factory).parameters
    except ValueError:
        return {}
    lacking = [
        name for name in RATES if name in parameters and parameters[name].default is inspect.Parameter.empty
    ]
    return dict.fromkeys(lacking, RATE)
