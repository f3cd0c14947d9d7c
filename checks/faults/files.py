"""Faults of files: damaged files of every kind, links that leave the store, hostile data and hostile names."""

import damaged
import hostile_data
import hostile_names

FAULTS = (*damaged.FAULTS, *hostile_data.FAULTS, *hostile_names.FAULTS)
