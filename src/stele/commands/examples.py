"""The examples at the end of ``--help``, for every command. tests/commands/test_command_line.py parses each of them."""

import argparse
import shutil
import textwrap
from collections.abc import Iterator

EXIT_CODES = "Exit: 0 success; 2 usage or environment; 4 internal error; 130 interrupted."  # of most commands
EXAMPLES = {
    "": (
        "stele gate jax==0.10.1 jax==0.10.2",
        "stele doctor",
    ),
    "gate": (
        "stele gate jax==0.10.1 jax==0.10.2 --task gru",
        "stele gate torch==2.12.0 torch==2.13.0 --model net.py:build --input 8x3x64x64",
        "stele gate torch==2.12.0 torch==2.13.0 --with-project . -- pytest tests",
        "stele gate --changed main --model net.py:build --budget 40m --markdown gate.md",
        "stele gate torch torch-compile --metric step --phase train",
        "stele gate jax==0.10.1 jax==0.10.2 --resume --budget 60m",
    ),
    "values": ("stele values", "stele values --json values.json"),
    "explain": (
        "stele explain jax-as-shipped@jax==0.8.0 jax-as-shipped@jax==0.9.2 --task cnn --phase train",
        "stele explain keras-torch torch --task cnn --phase train --json explanation.json",
        "stele explain jax==0.9.2 jax==0.10.2 --task gru --phase infer --bundle slower.zip",
    ),
    "bisect": (
        "stele bisect jax 0.9.2 0.10.2 --task gru",
        "stele bisect jax 0.9.2 0.10.2 -- pytest tests/test_loss.py::test_loss",
        'stele bisect keras "keras==3.14.1 tensorflow-cpu==2.20.0" "keras==3.15.1 tensorflow-cpu==2.21.0" --pins',
    ),
    "releases": ("stele releases sync jax", "stele releases run jax", "stele releases publish"),
    "releases sync": ("stele releases sync", "stele releases sync jax torch --pre"),
    "releases list": ("stele releases list jax-0.9.2..jax-0.10.2",),
    "releases run": (
        "stele releases run jax --last 4",
        "stele releases run jax-0.9.2..jax-0.10.2 --task gru --budget 2h",
    ),
    "releases publish": ("stele releases publish --site public",),
    "releases report": ("stele releases report --write docs/results/history.md",),
    "releases measure": ("stele releases measure jax-0.10.2 --python .venv/bin/python --task gru",),
    "nightly": ("stele nightly --budget 4h --site site", "stele nightly jax==0.10.1 --pre -- pytest tests"),
    "fleet": ("stele fleet run --framework torch,jax --task cnn", "stele fleet status"),
    "fleet run": (
        "stele fleet run --framework torch,jax --task cnn,gru --launches 5",
        "stele fleet run --framework torch --device cuda --address auto --type H100 --type H200",
        "stele fleet run --framework torch,jax --slurm --partition cpu",
    ),
    "fleet gate": (
        "stele fleet gate jax==0.10.1 jax==0.10.2 --task gru",
        "stele fleet gate torch==2.12.0 torch==2.13.0 --device cuda --address auto --type H100 --type H200",
    ),
    "fleet nightly": ("stele fleet nightly jax torch --address auto",),
    "fleet status": ("stele fleet status",),
    "fleet join": ("stele fleet join --head 10.0.0.5", "stele fleet join 10.0.0.5:6379"),
    "calibrate": ("stele calibrate", "stele calibrate --framework jax --task gru --budget 5m"),
    "doctor": ("stele doctor",),
    "completion": (
        "stele completion bash > ~/.local/share/bash-completion/completions/stele",
        "stele completion zsh > ~/.zsh/completions/_stele",
    ),
    "report": (
        "stele report",
        "stele report --html report.html",
        "stele report .stele --html all.html --csv tables",
        "stele report gate.json --step-summary",
    ),
    "time-to-accuracy": (
        "stele time-to-accuracy --task cnn --framework torch,jax --scale quick --target 50% --seeds 10",
        "stele time-to-accuracy --task cifar-fast --framework torch,jax --division open",
    ),
    "tricks": ("stele tricks --framework torch,jax --task cifar-fast --scale cpu --plot tricks.svg",),
    "schema": ("stele schema", "stele schema gate > gate.schema.json"),
    "baseline": ("stele baseline promote",),
    "baseline promote": ("stele baseline promote", "stele baseline promote torch-cnn-train-cpu-fp32"),
    "table": ("stele table", "stele table --steps --write docs/results/steps.md"),
    "env": ("stele env list", "stele env make mxnet-gluon"),
    "env list": ("stele env list", "stele env list --json"),
    "env make": ("stele env make jax==0.9.2", "stele env make --all --offline"),
    "env remove": ("stele env remove jax==0.9.2",),
    "env lock": ("stele env lock mxnet-gluon --python python3.8",),
    "parity": (
        "stele parity --framework torch --task gru",
        "stele parity --framework jax==0.10.1,jax==0.10.2 --model net.py:build",
    ),
    "band": ("stele band --task gru --scale quick --seeds 5",),
    "defaults": ("stele defaults torch", "stele defaults keras==3.14.1 keras==3.15.1"),
    "capabilities": ("stele capabilities --framework torch,jax",),
}


def add(top: argparse.ArgumentParser) -> None:
    """Add what it lacks to the help of every command: a description, the exit codes and the examples."""
    width = shutil.get_terminal_size().columns - 2
    about = dict(summaries(top))
    for name, parser in parsers(top):
        lines = "\n".join(f"  {example}" for example in EXAMPLES.get(name, ()))
        described = parser.description or about[name]
        parser.description = textwrap.fill(f"{described[0].upper()}{described[1:].rstrip('.')}.", width)
        parser.epilog = f"{textwrap.fill(parser.epilog or EXIT_CODES, width)}\n\nExamples:\n{lines}"
        parser.formatter_class = argparse.RawDescriptionHelpFormatter


def summaries(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the words that select each subcommand, and what the list of commands says about it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                words = f"{name} {choice.dest}".strip()
                yield words, choice.help or ""
                yield from summaries(action.choices[choice.dest], words)


def parsers(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the parser of each command and of its subcommands, with the words that select it."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, subparser in action.choices.items():
                yield from parsers(subparser, f"{name} {word}".strip())
