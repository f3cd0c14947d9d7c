"""python -m checks NAME [OPTION ...] runs a program of this folder; without a name, lists them."""

import sys
from pathlib import Path

from studies.programs import main

main(Path(__file__).parent, sys.argv[1:])
