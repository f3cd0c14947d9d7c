"""The entry point of the ``stele`` command. ``stele.commands`` defines the subcommands."""

import argparse
import contextlib
import io
import os
import platform
import re
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path

try:
    from stele import config, files
    from stele.commands import (
        band,
        baseline,
        bisect,
        calibrate,
        capabilities,
        completion,
        defaults,
        doctor,
        env,
        examples,
        explain,
        fleet,
        gate,
        nightly,
        options,
        outputs,
        parity,
        releases,
        report,
        schema,
        table,
        time_to_accuracy,
        tricks,
        usage,
        values,
    )
    from stele.errors import SteleError
    from stele.measuring import lock, progress
    from stele.text import printable, without_passwords
except Exception as problem:  # Python would exit with 1, which is a verdict against NEW
    print(
        f"stele: it cannot start: {type(problem).__name__}: {problem}\nA package that it needs is missing or damaged. "
        f"Install it again: {sys.executable} -m pip install --force-reinstall pytest-stele",
        file=sys.stderr,
    )
    sys.exit(2)

EXIT_CODES = (
    "Exit: 0 pass, or success; 1 a verdict against what was judged, and nothing else; 2 usage or environment; "
    "3 inconclusive, or the budget ran out; 4 an error in Stele; 130 interrupted."
)
# the first command of each group of the help
GROUPS = {
    "gate": "judge an upgrade",
    "bisect": "follow the releases of a framework",
    "fleet": "use several machines",
    "doctor": "prepare this machine",
    "time-to-accuracy": "train to an accuracy",
    "parity": "compare frameworks",
    "schema": "for programs and shells",
}
SAVED = "Finished results are saved."
ERRORS = Path(".stele/errors")
DISTRIBUTION = "pytest-stele"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, as in EXIT_CODES."""
    replace_unencodable()
    typed = sys.argv[1:] if arguments is None else arguments
    # SIGTERM must interrupt as well, so that all started processes end
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with config.hold():
            words, program = options.split_program(typed)
            status = run(parser().parse_args(words), typed, program)
        flush()
    except KeyboardInterrupt as stop:  # a gate says itself what is saved, and how it is continued
        return fail(130, f"interrupted. {stop.args[0] if stop.args else SAVED}".rstrip())
    except SteleError as error:
        return fail(2, str(error))
    except OSError as error:  # a full disk, or a reader that closed the output
        discard_output()
        return fail(2, files.describe(error))
    except UnicodeEncodeError as error:  # a path, because output replaces what it cannot encode
        return fail(2, files.describe_encoding(error))
    except Exception as error:  # everything else is an error in Stele
        return fail(4, internal_error(error, typed))
    finally:
        signal.signal(signal.SIGTERM, before)
    return status


def replace_unencodable() -> None:
    """Let the output replace characters that its encoding lacks, in place of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def flush() -> None:
    """Raise OSError here if the output cannot be written, and not when the interpreter ends."""
    if sys.stdout is not None:  # None if the caller closed it
        sys.stdout.flush()


def discard_output() -> None:
    """Direct standard output to nowhere if it cannot be written: the interpreter writes its buffer again at the end."""
    try:
        flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def fail(status: int, message: str) -> int:
    with contextlib.suppress(OSError):  # nobody reads it
        print(f"stele: {printable(without_passwords(message))}", file=sys.stderr, flush=True)
    return status


def internal_error(error: Exception, typed: Sequence[str]) -> str:
    """Return the message for an error in Stele, and write its traceback to a file."""
    what = f"internal error: {type(error).__name__}: {error}"
    notice = "This is an error in Stele, not a verdict. Everything that was measured is kept."
    report = f"Report it in the issue tracker of {DISTRIBUTION}, with"
    details = error_details(error, typed)
    path = ERRORS / f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    try:
        files.write_text(path, details)
    except (OSError, SteleError) as problem:
        return f"{what}\n{notice} {report} these lines, which could not be written to {path} ({problem}):\n{details}"
    return f"{what}\n{notice} {report} the file {path}."


def error_details(error: Exception, typed: Sequence[str]) -> str:
    """Return what a report of an error needs: the command, the versions and the traceback."""
    where = f"Stele {release()}, Python {platform.python_version()}, {platform.platform()}"
    lines = "".join(traceback.format_exception(error))
    return without_passwords(f"{shlex.join(['stele', *typed])}\n{where}\n\n{lines}")


def release() -> str:
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        return "of a checkout"


def run(parsed: argparse.Namespace, arguments: Sequence[str], program: Sequence[str] = ()) -> int:
    """Run the command, alone on this machine if it measures: such commands have the option ``--no-wait``.

    ``program`` are the words after --, of a command that judges a program of the user.
    What is wrong on the command line is said before other measurements are waited for: a command has ``check`` for it.
    """
    parsed.typed, parsed.program = tuple(arguments), tuple(program)
    if program and "program" not in options.defaults_of(parsed.options):
        raise SteleError(f"this command judges no program of yours. Leave out: -- {shlex.join(program)}")
    chosen = options.from_arguments(parsed.options, parsed)
    outputs.check(options.flat(chosen))
    if parsed.check is not None:
        parsed.check(chosen)
    with contextlib.ExitStack() as stack:
        if hasattr(parsed, "no_wait"):
            command = without_passwords(shlex.join(["stele", *arguments]))
            try:
                stack.enter_context(lock.machine(command, wait=not parsed.no_wait, say=progress.say))
            except KeyboardInterrupt:
                raise KeyboardInterrupt("") from None  # nothing is measured yet
        status: int = parsed.command(chosen)
    return status


class Parser(usage.Parser):
    """The parser of ``stele``, whose help has the commands in groups."""

    def format_help(self) -> str:
        text = super().format_help()
        for command, title in GROUPS.items():
            text = re.sub(rf"^    {command}\b", f"  {title}:\n\\g<0>", text, count=1, flags=re.M)
        return text


def parser() -> argparse.ArgumentParser:
    about = "Compares two versions of a deep-learning framework on your own model: results, speed and memory."
    top = Parser(prog="stele", description=about, epilog=EXIT_CODES)
    top.add_argument("--version", action="version", version=f"stele {release()}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for module in (
        gate,
        values,
        explain,
        report,
        bisect,
        releases,
        nightly,
        fleet,
        doctor,
        calibrate,
        env,
        baseline,
        time_to_accuracy,
        tricks,
        band,
        parity,
        table,
        defaults,
        capabilities,
        schema,
    ):
        module.add(commands)
    completion.add(commands, top)
    examples.add(top)
    return top


if __name__ == "__main__":
    sys.exit(main())
