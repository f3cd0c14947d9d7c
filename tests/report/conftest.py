"""The gates, folders of measurements, trainings and tricks of tests.support are fixtures here."""

from tests.support.gates import gate, model_gate
from tests.support.reports import folder
from tests.support.trainings import measure_seeds
from tests.support.tricks import tricks

__all__ = ["folder", "gate", "measure_seeds", "model_gate", "tricks"]
