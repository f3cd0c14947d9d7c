"""The gates, and folders of measurements, of tests.support are fixtures here."""

from tests.support.gates import gate, model_gate, two_at_once
from tests.support.reports import folder

__all__ = ["folder", "gate", "model_gate", "two_at_once"]
