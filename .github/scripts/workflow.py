"""What the scripts share: environment variables of a workflow, its commands, and the program ``gh``."""

import os
import subprocess
import sys
from pathlib import Path

LONGEST = 60_000  # of the text of a comment or an issue; GitHub accepts 65,536 characters


def annotate(kind: str, message: str) -> None:
    """Show a message beside the run: ``kind`` is error, warning or notice."""
    for sign, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        message = message.replace(sign, code)
    print(f"::{kind}::{message}", flush=True)


def append(variable: str, text: str) -> None:
    """Append text to the file that an environment variable names, such as GITHUB_OUTPUT; nothing outside a workflow."""
    if os.environ.get(variable):
        with Path(os.environ[variable]).open("a", encoding="utf-8") as file:
            file.write(text)


def run_url() -> str:
    """Return the address of the run of the workflow."""
    server, repository, run = (
        os.environ.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    )
    return f"{server}/{repository}/actions/runs/{run}"


def shortened(text: str, end: str) -> str:
    """Return text that GitHub accepts: what is too long is cut at a line, and ``end`` says where the rest is."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST].rpartition(chr(10))[0]}\n\n{end}\n"


def gh(*arguments: str, text: str | None = None) -> str:
    """Run ``gh`` with ``text`` as its input, and return its output. Raises CalledProcessError with its message."""
    done = subprocess.run(["gh", *arguments], input=text, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        done.check_returncode()
    return done.stdout
