"""Errors of users' models, with messages for the user."""

import contextlib
import functools
import os
import sys
import traceback
from importlib.machinery import SourceFileLoader

from stele_worker import is_own
from stele_worker.models.installed import is_in_packages, is_standard
from stele_worker.protocol import InternalError

MISFIT = (
    "torchvision does not fit torch ({}): each torchvision belongs to one torch, for example torchvision 0.28 to "
    "torch 2.13, so install both in one command."
)
LOCALE = (
    "\nPerhaps the reason is a name: the encoding of this locale, {}, cannot express {!r}. "
    "Set a locale with UTF-8, such as LC_ALL=C.UTF-8, or set PYTHONUTF8=1."
)


class SpecError(ValueError):
    """The user has to change something; the message says what, and shows how."""


class WeightsError(SpecError):
    """Weights that cannot be matched with the parameters of a model."""


class UserCodeError(Exception):
    """The user's code raised: one message, then only the user's own traceback frames."""


@contextlib.contextmanager
def user_code(name, folder):
    """Run the user's code: no bytecode of it is written, and what it raises becomes a UserCodeError.

    ``name`` is the spec that the message quotes; ``folder`` is the absolute path of the user's project.
    """
    before = SourceFileLoader.set_data
    SourceFileLoader.set_data = functools.partialmethod(write_bytecode, before)
    try:
        yield
    except SpecError:
        raise
    except BaseException as error:  # also sys.exit(), and an interrupt that the code itself raises
        raise torchvision_error(error) or UserCodeError(user_message(name, error, folder)) from error
    finally:
        SourceFileLoader.set_data = before


def write_bytecode(loader, write, path, data, **options):
    """Write the bytecode of a package, which each launch would compile again; the user's folder stays as it is."""
    if is_in_packages(path) or is_standard(path):
        write(loader, path, data, **options)


@contextlib.contextmanager
def of_user(model):
    """Turn an exception that passed through the user's files into a UserCodeError; others stay as they are.

    ``model`` is the host's dict, or None. Raise InternalError for a mistake of Stele with a model.
    """
    try:
        yield
    except (SpecError, UserCodeError):
        raise
    except BaseException as error:
        if model is not None:
            raise_internal(error)
        if model is None or not project_frames(error, model["folder"]):
            raise
        raise UserCodeError(user_message(model["spec"], error, model["folder"])) from error


def raise_internal(error):
    """Raise InternalError if Stele's own code, and nothing that it calls, uses a name that does not exist.

    Other exceptions may come from compiled code of a release, which has no frames. JAX removes its frames, and says so
    in a note or a cause.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not is_own(frames[-1].filename):
        return
    if error.__cause__ is not None or getattr(error, "__notes__", None):
        return
    of_module = isinstance(error, AttributeError) and str(error).startswith("module ")
    if of_module or isinstance(error, (NameError, LookupError)):
        raise InternalError("".join(traceback.format_exception(type(error), error, error.__traceback__))) from error


def torchvision_error(error):
    """Return a SpecError if the error comes from a torchvision that does not fit torch; else None."""
    # the first import says so; later ones find the half-imported module; transformers wraps both
    signs = ("operator torchvision::", "partially initialized module 'torchvision'")
    while error is not None:
        if any(sign in str(error) for sign in signs):
            return SpecError(MISFIT.format(error))
        error = error.__cause__ or error.__context__
    return None


def user_message(name, error, folder):
    """Return the message of a UserCodeError: the spec, the exception, and the user's frames."""
    return "{} raised {}".format(name, describe_error(error, folder))


def describe_error(error, folder):
    """Return the type and the message of an exception, the place of a syntax error, and the user's frames."""
    lines = traceback.format_exception_only(type(error), error)
    # of a syntax error the place comes before the message; notes may come after it
    place = [line for line in lines if line.startswith(" ")] if isinstance(error, SyntaxError) else []
    message = next(line for line in lines if line not in place) + "".join(place)
    frames = "".join(traceback.format_list(user_frames(error, folder)))
    return (message.rstrip() + "\n" + frames).rstrip() + locale_advice(error)


def locale_advice(error):
    """Return what to do about a file in the traceback whose name the locale cannot express: C++ libraries refuse it."""
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename != frame.filename.encode("utf-8", "replace").decode():
            return LOCALE.format(sys.getfilesystemencoding(), frame.filename)
    return ""


def user_frames(error, folder):
    """Return the frames of the user's project. If there are none: the last two outside Stele and importlib."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not is_internal(frame.filename)]
    return project_frames(error, folder) or frames[-2:]


def project_frames(error, folder):
    """Return the frames of the user's project."""
    frames = traceback.extract_tb(error.__traceback__)
    return [each for each in frames if is_in_project(each.filename, folder) and not is_internal(each.filename)]


def is_internal(path):
    return path.startswith("<frozen") or os.sep + "importlib" + os.sep in path or is_own(path)


def is_in_project(path, folder):
    """Return whether a file belongs to the project: it is in its folder, but not in an environment there."""
    installed = any(part in path.split(os.sep) for part in ("site-packages", "dist-packages"))
    return os.path.abspath(path).startswith(os.path.join(folder, "")) and not installed
