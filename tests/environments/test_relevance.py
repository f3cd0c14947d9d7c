"""The order and the number of the packages that differ, as a gate shows them."""

import sys
from types import SimpleNamespace

from stele.environments import Environment, packages, relevance
from stele.environments.packages import Difference
from stele.gate.entries import Verdict
from stele.gate.trial import Trial
from stele.report import gate as pages

OLD = {
    "huggingface-hub": "0.36.0", "transformers": "4.57.3", "torch": "2.12.0", "numpy": "1.26.4", "tokenizers": "0.22.1",
    "anyio": "4.0", "certifi": "2025.1", "click": "8.1", "h11": "0.16", "httpx": "0.28", "idna": "3.1", "rich": "13.0",
    "nvidia-cublas": "12.1", "six": "1.17",
}  # fmt: skip
NEW = dict.fromkeys(OLD, "99.0") | {"six": "1.17", "tokenizers": "0.23", "typer": "0.1"}
QUIET = SimpleNamespace(conditions=list, header={"cells": [], "metrics": {}, "parity": True})
FRAMEWORKS = {"torch", "transformers"}
NEEDED = {"huggingface-hub", "tokenizers"}


def ordered(needed):
    pairs = packages.differences(OLD, NEW, ["transformers"])
    return relevance.by_relevance(pairs, FRAMEWORKS, needed)


def test_frameworks_and_their_companions_come_first_then_what_the_named_package_needs():
    names = [one.name for one in ordered(NEEDED)]
    assert names[:5] == ["numpy", "nvidia-cublas", "torch", "huggingface-hub", "tokenizers"]
    assert names[5:] == ["anyio", "certifi", "click", "h11", "httpx", "idna", "rich", "typer"]


def test_another_major_version_comes_before_another_minor_one():
    pairs = [Difference("a", "1.0", "1.1"), Difference("b", "1.9", "2.0"), Difference("c", None, "1.0")]
    assert [one.name for one in relevance.by_relevance(pairs, (), ())] == ["b", "c", "a"]


def test_a_long_list_is_shortened_and_a_short_one_is_not():
    pairs = ordered(NEEDED)
    text = packages.shortened(pairs, "see stele report")
    assert text.startswith("numpy 1.26.4 → 99.0, nvidia-cublas 12.1 → 99.0, torch 2.12.0 → 99.0, huggingface-hub ")
    assert text.endswith(", anyio 4.0 → 99.0 and 7 more: see stele report")
    assert packages.shortened(pairs[:7], "x") == ", ".join(packages.lines(pairs[:7]))
    assert packages.shortened([], "x") == ""


def test_the_packages_are_below_the_verdict(monkeypatch):
    arms = [Environment(name=name, label=name, framework="torch") for name in ("a", "b")]
    subject = Trial(*arms, (), (), None, seed=0, budget=60.0, differences=tuple(ordered(NEEDED)))
    for status, shown in (("PASS", False), ("BROKEN", True)):  # they may be the cause
        lines = pages.terminal_lines(subject, [Verdict("m", "all", "parity", status, "equal")], QUIET)
        assert lines[0].startswith(f"{status}  a → b")
        assert any(line.startswith("  also different  numpy") for line in lines) is shown


def test_an_interpreter_says_what_a_package_needs_directly():
    here = Environment(name="x", label="x", framework="none", command=(sys.executable, *relevance.MODULE))
    found = relevance.needed_by(["pytest", "nobody-has-this"], here)
    assert {"pluggy", "iniconfig", "packaging"} <= found and "hypothesis" not in found


def test_the_order_is_by_name_if_the_interpreter_does_not_know():
    gone = Environment(name="x", label="x", framework="none", command=("/nowhere/python", *relevance.MODULE))
    other = Environment(name="x", label="x", framework="none", command=("julia", "worker.jl"))
    assert relevance.needed_by(["torch"], gone) == relevance.needed_by(["torch"], other) == set()
