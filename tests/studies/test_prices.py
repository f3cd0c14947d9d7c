"""The page of prices: which pairs are compared, and what their ratios mean."""

import json
import math
from dataclasses import replace

import pytest

from stele.environments import ORACLE
from stele.gate.launcher import plan_of
from stele.measuring import measure
from stele.measuring.settings import Settings
from stele.statistics import Estimate
from stele.subjects import Cell, Tasks
from studies import prices

CELL = Cell("gru", "train")
NAMES = ("jax", "jax-as-shipped", "keras-jax", "torch", "torch-compile", "torch-max-autotune")


def test_the_pairs_are_those_of_which_both_sides_are_ready():
    found = {(pair.kind, pair.first, pair.second) for pair in prices.pairs_of(CELL, NAMES)}
    assert found == {
        ("wrapper", "keras-jax", "jax"),
        ("search", "torch-max-autotune", "torch-compile"),
        ("tuning", "jax-as-shipped", "jax"),
        *(("determinism", name, name) for name in ("jax", "keras-jax", "torch")),
    }


@pytest.mark.parametrize(
    ("kind", "ratio", "meaning"),
    [
        ("wrapper", (1.10, 1.20, 1.30), "costs time"),
        ("wrapper", (0.70, 0.80, 0.90), "saves time"),
        ("wrapper", (0.99, 1.00, 1.01), "no difference that matters"),
        ("tuning", (0.99, 1.00, 1.01), "the tuning does not help here"),
        ("tuning", (1.10, 1.20, 1.30), "the tuning helps"),
        ("tuning", (0.70, 0.80, 0.90), "the tuning makes it slower: remove it"),
        ("tuning", (0.90, 1.00, 1.20), "unclear"),
        ("tuning", (None, 1.00, None), "too few launches"),
    ],
)
def test_what_a_ratio_means(kind, ratio, meaning):
    assert prices.meaning(kind, Estimate(*ratio)) == meaning


def test_a_row_shows_the_ratio_or_why_there_is_none():
    pair = prices.Pair("wrapper", "keras-jax", "jax", CELL)
    assert prices.row(pair, [math.log(1.2)] * 6)[3:] == ["[1.200 1.200 1.200]", "6", "costs time"]
    assert prices.row(pair, [0.1, "no g++ | found"])[3:] == ["", "2", "no g++ | found"]


def test_the_page_names_what_is_missing():
    pair = prices.Pair("wrapper", "keras-jax", "jax", CELL)
    text = prices.markdown([pair], {str(pair): [0.0] * 6})
    assert "| keras-jax | jax | gru train | [1.000 1.000 1.000] | 6 | no difference that matters |" in text
    assert text.count("Not measured yet.") == len(prices.KINDS) - 1


def test_a_tuning_that_helps_in_no_cell_is_named():
    cells = [Cell("gru", phase) for phase in ("train", "infer")]
    chainer, jax = (
        [prices.Pair("tuning", f"{name}-as-shipped", name, cell) for cell in cells] for name in ("chainer", "jax")
    )
    stored = {str(pair): [0.0] * 6 for pair in chainer + jax} | {str(jax[0]): [0.3] * 6}
    assert "No longer helps in any row: chainer beside chainer-as-shipped." in prices.markdown(chainer + jax, stored)
    assert "Each tuning helps in at least one row." in prices.markdown(jax, stored)


def test_launches_at_the_same_time_are_separate_results(tmp_path, monkeypatch):
    monkeypatch.setattr(prices, "FILE", tmp_path / "prices.jsonl")
    lines = [{"pair": "a", "result": [0.1, 0.2]}, {"pair": "a", "result": "no g++"}]
    prices.FILE.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert prices.load() == {"a": [0.1, 0.2, "no g++"]}


@pytest.mark.slow
def test_a_side_can_have_settings_of_its_own():
    settings = Settings(device="cpu", threads=1)
    changed = {"b": replace(settings, deterministic=True)}
    runs = measure.side_by_side(
        {"a": ORACLE, "b": ORACLE}, plan_of(CELL, "smoke", Tasks(), 3), settings, changed=changed
    )
    assert [runs[side].settings.deterministic for side in "ab"] == [False, True]
