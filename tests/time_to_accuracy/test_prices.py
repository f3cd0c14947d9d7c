from datetime import date, timedelta

import pytest

from stele import files
from stele.errors import SteleError
from stele.measuring.machine import Machine
from stele.time_to_accuracy import prices
from stele.time_to_accuracy.prices import Price

TODAY = date(2026, 11, 23)


def test_the_table_has_positive_prices_with_a_date_and_a_source():
    assert prices.read()
    entries = files.parse_toml(prices.FILE.read_text())
    for name, price in prices.read().items():
        assert price.per_hour > 0 and isinstance(price.day, date), name
        assert entries[name]["source"].startswith("https://")


@pytest.mark.parametrize(
    ("gpu", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "runpod-h100-sxm"),
        ("NVIDIA H200", "hyperstack-h200-sxm"),
        ("NVIDIA GH200 480GB", None),
        ("Tesla T4", None),
    ],
)
def test_the_price_of_the_gpu_is_found_by_its_name(gpu, name):
    machine = Machine(gpus=({"name": gpu},))
    price = prices.find(None, machine, "cuda")
    assert (price and price.name) == name
    assert prices.find(None, machine, "cpu") is None


def test_a_price_can_be_named_or_given():
    assert prices.find("runpod-h100-sxm", {}, "cpu") == prices.read()["runpod-h100-sxm"]
    assert prices.find("2.5", {}, "cpu") == Price("2.5 USD/h", 2.5)
    for text in ("0", "nan", "inf", "cheap"):
        with pytest.raises(SteleError):
            prices.find(text, {}, "cpu")


def test_the_cost_is_the_price_of_the_hours():
    assert Price("x", 3.6).cost(100.0) == pytest.approx(0.1)


def test_a_price_older_than_a_year_is_a_warning():
    assert prices.warning(Price("x", 1.0, TODAY - timedelta(366)), TODAY) is not None
    assert prices.warning(Price("x", 1.0, TODAY - timedelta(365)), TODAY) is None
    assert prices.warning(Price("x", 1.0), TODAY) is None


def test_an_old_price_is_a_warning(measure_seeds, monkeypatch, capsys):
    monkeypatch.setattr(prices, "read", lambda: {"old": prices.Price("old", 3.6, date(2020, 1, 1), "V100")})
    assert measure_seeds("--price=old") == 0
    assert "The price old is of 2020-01-01, more than a year ago" in capsys.readouterr().err
