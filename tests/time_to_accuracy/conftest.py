"""The trainings of tests.support.trainings are fixtures here."""

from tests.support.trainings import measure_seeds

__all__ = ["measure_seeds"]
