"""Faults of the host: signals, builds, two commands at once, disks, networks, clocks, locales, paths, terminals."""

import interruptions
import resources
import surroundings

FAULTS = (*interruptions.FAULTS, *resources.FAULTS, *surroundings.FAULTS)
