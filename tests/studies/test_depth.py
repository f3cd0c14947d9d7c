"""The page about depth: what its rows and cells say."""

import pytest

from stele.text import MIB
from studies import depth

KIND = "training, recomputed"
MEMORY = [depth.Memory("torch-compile", KIND, layers) for layers in depth.DEPTHS]
PEAKS = {str(item): [(100 + 3 * item.depth) * MIB] for item in MEMORY}
BRANCHES = depth.Branches("torch-compile", "infer")


def test_the_slope_of_the_peaks_is_the_memory_of_a_layer():
    row = depth.memory_row("torch-compile", KIND, PEAKS)
    assert row[3:] == ["124", "148", "196", "292", "3.00", "1.5"]


def test_a_failed_depth_is_shown_instead_of_numbers():
    stored = {**PEAKS, str(MEMORY[2]): ["failed: no g++"]}
    assert depth.memory_row("torch-compile", KIND, stored)[2:] == [KIND, "failed: no g++"]


@pytest.mark.parametrize(
    ("results", "cell"),
    [([0.9, 1.0, 1.2], "1.00 [0.90 1.20]"), ([], "absent"), ([1.0, "failed: no g++"], "failed: no g++")],
)
def test_a_cell_has_the_median_of_the_ratios_or_why_there_is_none(results, cell):
    assert depth.ratios(results) == cell


def test_the_page_leaves_out_a_step_of_which_a_depth_is_missing():
    stored = {**PEAKS, str(BRANCHES): [0.5]}
    assert KIND in depth.markdown(MEMORY, [BRANCHES], stored)
    del stored[str(MEMORY[0])]
    text = depth.markdown(MEMORY, [BRANCHES], stored)
    assert KIND not in text and "0.50 [0.50 0.50]" in text
