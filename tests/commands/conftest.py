"""Gates, releases, profiles, folders of measurements, trainings and tricks of tests.support are fixtures here."""

from tests.support.gates import gate, model_gate
from tests.support.histories import abacus, machine, serve
from tests.support.profiles import explain
from tests.support.reports import folder
from tests.support.trainings import measure_seeds
from tests.support.tricks import tricks

__all__ = ["abacus", "explain", "folder", "gate", "machine", "measure_seeds", "model_gate", "serve", "tricks"]
