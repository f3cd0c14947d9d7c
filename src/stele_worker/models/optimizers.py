"""Construct the optimizer that the user names as "module:Class"."""

import importlib
import inspect

from stele_worker.models import specs
from stele_worker.models.errors import SpecError, is_in_project, user_code

RATE = 1e-3  # where a class has no learning rate of its own
RATES = ("lr", "learning_rate")


def construct(task, methods, *arguments, **named):
    """Return the optimizer of a task with its defaults; a required learning rate is 1e-3.

    ``methods`` are those that a step calls. Something else is not called: it may be ``os:system``. Raise SpecError, or
    UserCodeError.
    """
    text, folder = task.optimizer, task.model["folder"]
    module, _, name = text.partition(":")
    if not name:
        raise SpecError("The optimizer {!r} is not written as module:Class, such as torch.optim:AdamW.".format(text))
    with user_code(text, folder):
        try:
            module = importlib.import_module(module)
        except ImportError as error:
            raise SpecError("The optimizer {!r} cannot be imported: {}".format(text, error)) from error
    factory = specs.attribute(module, name, text)
    is_own = is_in_project(getattr(module, "__file__", None) or "", folder)
    require(callable(factory) and (is_own or has(factory, methods) or takes_rate(factory)), text, methods)
    with user_code(text, folder):
        optimizer = factory(*arguments, **dict(required_rate(factory), **named))
    require(has(optimizer, methods), text, methods)
    return optimizer


def require(is_optimizer, text, methods):
    if not is_optimizer:
        message = "{!r} is not an optimizer of this framework: it has no method {}."
        raise SpecError(message.format(text, " and ".join(methods)))


def has(value, methods):
    return all(hasattr(value, method) for method in methods)


def takes_rate(factory):
    """Return whether something is a function with a learning rate, as the optimizers of optax are."""
    return inspect.isfunction(factory) and bool(set(RATES) & set(inspect.signature(factory).parameters))


def required_rate(factory):
    """Return {"lr": 1e-3} if the factory requires a learning rate of that name; else {}."""
    try:
        parameters = inspect.signature(factory).parameters
    except ValueError:
        return {}
    lacking = [name for name in RATES if name in parameters and parameters[name].default is inspect.Parameter.empty]
    return dict.fromkeys(lacking, RATE)
