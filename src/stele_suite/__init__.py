"""The suite: what is measured, without the machinery that measures it.

tasks/                          what each Task computes, in NumPy: sizes, hyper-parameters, seeded weights, data
recipes/<task>/<framework>.py   a Task in a framework
oracle/                         the operations of the NumPy recipes, in float64, with their gradients
golden/<task>.npz               what the NumPy recipe computes on a small batch: ``stele.parity.golden_numbers``
published.json                  the results of the original Rosetta Stone: ``stele.report.published``

The host and the worker import this package. It imports neither, except that a recipe imports its framework from
``stele_worker.frameworks``.
"""
