"""The price of a machine, from ``prices.toml`` or as the user gave it. An unknown price is None."""

import math
from datetime import date
from pathlib import Path
from typing import NamedTuple

from stele import files
from stele.errors import SteleError
from stele.measuring.machine import Machine
from stele.text import unknown_message

FILE = Path(__file__).parent / "prices.toml"
OLDEST = 365  # days
HOUR = 3600.0  # seconds


class Price(NamedTuple):
    """US dollars per hour, on demand. ``day`` is None for a price that the user gave."""

    name: str
    per_hour: float
    day: date | None = None
    gpu: str | None = None  # a part of the name that nvidia-smi reports

    def cost(self, seconds: float) -> float:
        """Return the US dollars for so many seconds."""
        return self.per_hour * seconds / HOUR


def find(text: str | None, machine: Machine, device: str) -> Price | None:
    """Return the price that a user named or gave, such as "2.49"; by default that of the GPU of the machine.

    None if the table has no price. Raises SteleError, with the nearest name, for an unknown one.
    """
    table = read()
    if text is not None:
        return table[text] if text in table else price_from(text, list(table))
    gpus = [gpu.get("name") or "" for gpu in machine.gpus] if device == "cuda" else []
    return next((price for price in table.values() if gpus and str(price.gpu) in gpus[0]), None)


def read(file: Path | None = None) -> dict[str, Price]:
    """Return the prices of the table by name."""
    entries = files.parse_toml((file or FILE).read_text(encoding="utf-8"))
    return {name: Price(name, entry["per_hour"], entry["date"], entry["gpu"]) for name, entry in entries.items()}


def price_from(text: str, names: list[str]) -> Price:
    try:
        per_hour = float(text)
    except ValueError:
        raise SteleError(f"{unknown_message('price', text, names)} Or give US dollars per hour.") from None
    if not 0 < per_hour < math.inf:
        raise SteleError(f"--price {text}: a price is a positive number of US dollars per hour.")
    return Price(f"{per_hour:g} USD/h", per_hour)


def warning(price: Price, today: date) -> str | None:
    """Return a warning if a price was read more than a year ago, else None."""
    if price.day is None or (today - price.day).days <= OLDEST:
        return None
    return f"The price {price.name} is of {price.day}, more than a year ago. Give the current one: --price USD_PER_HOUR"
