"""Errors that the code of a subject causes, or its options: no release is to blame, and the message is for the user."""

import re

from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring.worker import WorkerError

UNFIT = "WeightsError"  # of the worker: weights cannot be matched with the parameters
USER_ERRORS = ("SpecError", "UserCodeError", UNFIT)  # of the worker: their message is complete
LACKING = re.compile(r"(?:^|raised )ModuleNotFoundError: No module named '(\w+)'$", re.M)  # not a part of a package


class SubjectError(SteleError):
    """A subject that cannot be used. The message is for the user and contains only the user's traceback."""


class UnfitWeights(SubjectError):
    """Weights that cannot be matched with the parameters of the model."""


def user_error(error: SteleError) -> SubjectError | None:
    """Return the error that the user's code caused, or None if it was caused by something else."""
    if not isinstance(error, WorkerError) or error.kind not in USER_ERRORS:
        return None
    message, kind = error.message or str(error), UnfitWeights if error.kind == UNFIT else SubjectError
    missing = LACKING.search(message)
    if missing is not None and error.worker is not None:
        message += f"\n{lacking(error.worker.environment, missing[1])}"
    return kind(message)


def lacking(environment: Environment, module: str) -> str:
    """Return what to do about a module that the user's code imports and the environment does not have."""
    add = (
        f"install its package in {environment.name}"
        if environment.lock is None
        else f"add its package to both arms, such as --with {module}"
    )
    return f"The environment of {environment.name} has no module '{module}'. Check the spelling of the name, or {add}."
