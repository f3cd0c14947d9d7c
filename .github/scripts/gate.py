"""Runs ``stele gate`` for action.yml. Every input comes in an environment variable, and no shell reads it."""

import os
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

from workflow import annotate, append, shortened

INCONCLUSIVE = 3
CHOICES = ("fail", "neutral")
REPORTS = {"json": "gate.json", "markdown": "gate.md", "junit": "gate.xml"}


def main() -> int:
    """Write the outputs ``code`` (of the gate) and ``exit`` (of the action). Return 0, so that the next steps run."""
    inputs = {
        name: os.environ.get(f"INPUT_{name.upper()}", "").strip()
        for name in ("framework", "model", "old", "new", "changed", "options", "inconclusive", "reports")
    }
    try:
        code = gate(inputs)
    except (ValueError, OSError) as error:
        annotate("error", str(error))
        code = 2
    neutral = code == INCONCLUSIVE and inputs["inconclusive"] == "neutral"
    if neutral:
        annotate("warning", "INCONCLUSIVE: there is not enough evidence for a verdict. This is not a pass.")
    append("GITHUB_OUTPUT", f"code={code}\nexit={0 if neutral else code}\n")
    return 0


def gate(inputs: Mapping[str, str]) -> int:
    """Run the gate, show its report, and return its exit code. Raises ValueError if the inputs do not fit together."""
    if inputs["inconclusive"] not in CHOICES:
        raise ValueError(f"inconclusive is {inputs['inconclusive']!r}. Choose from: {', '.join(CHOICES)}.")
    reports = Path(inputs["reports"])
    reports.mkdir(parents=True, exist_ok=True)
    files = [f"--{kind}={reports / name}" for kind, name in REPORTS.items()]
    stele = str(Path(sys.executable).with_name("stele"))  # -m would import a folder stele of the user
    command = [stele, "gate", *arms(inputs), *options(inputs), *files]
    earlier = records()
    code = without_workflow_commands(command)
    new = [str(path) for path in sorted(records() - earlier)]
    if new:  # a page that cannot be written is no verdict: the other reports remain
        without_workflow_commands([stele, "report", *new, f"--html={reports / 'gate.html'}"])
    pages = "\n".join(path.read_text(encoding="utf-8") for path in sorted(reports.glob("gate*.md")))
    append("GITHUB_STEP_SUMMARY", shortened(pages, "The uploaded report has the rest."))
    return code


def records() -> set[Path]:
    """Return the records of gates in the checkout."""
    return set(Path(".stele/gates").glob("*.jsonl"))


def arms(inputs: Mapping[str, str]) -> list[str]:
    """Return the arguments that name OLD and NEW. Raises ValueError if they are missing or named twice."""
    pair = [inputs["old"], inputs["new"]]
    if inputs["changed"]:
        if any(pair) or inputs["framework"]:
            raise ValueError("changed finds OLD and NEW itself. Leave out framework, old and new.")
        return [f"--changed={revision(inputs['changed'])}"]
    if not all(pair):
        raise ValueError("Set the inputs old and new, or changed: main.")
    pins = [f"{inputs['framework']}=={text}" if inputs["framework"] else text for text in pair]
    for text in pins:
        refuse_option(text)
    return pins


def options(inputs: Mapping[str, str]) -> list[str]:
    """Return the model, and the other options, which are one on each line."""
    model = [f"--model={inputs['model']}"] if inputs["model"] else []
    return [*model, *(line.strip() for line in inputs["options"].splitlines() if line.strip())]


def refuse_option(text: str) -> None:
    if text.startswith("-"):
        raise ValueError(f"{text!r} starts with a dash. Write options in the input options, one on each line.")


def revision(name: str) -> str:
    """Return a revision that git knows. A branch that the checkout does not have is fetched."""
    refuse_option(name)
    for candidate in (f"origin/{name}", name):
        if git("rev-parse", "--verify", "--quiet", f"{candidate}^{{commit}}").returncode == 0:
            return candidate
    depth = ["--depth=1"] if git("rev-parse", "--is-shallow-repository").stdout.strip() == "true" else []
    done = git("fetch", "--quiet", *depth, "origin", f"+refs/heads/{name}:refs/remotes/origin/{name}")
    if done.returncode:
        raise ValueError(f"git cannot fetch the branch {name!r}: {done.stderr.strip()}")
    return f"origin/{name}"


def git(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["git", *arguments], capture_output=True, text=True)


def without_workflow_commands(command: list[str]) -> int:
    """Run a command whose output the runner only shows, and return its exit code."""
    token = uuid.uuid4().hex
    print(f"::stop-commands::{token}", flush=True)
    try:
        return subprocess.run(command).returncode
    finally:
        print(f"\n::{token}::", flush=True)


if __name__ == "__main__":
    sys.exit(main())
