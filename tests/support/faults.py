import sys

from stele.environments import Environment
from stele.measuring.settings import Settings

SETTINGS = Settings(device="cpu", threads=1)
HELLO = """
import json, os, sys, time
from stele_worker import protocol
def send(kind, value):
    print(json.dumps({"id": request["id"], kind: value}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    BODY
"""


def python_environment(body):
    """Return an environment whose worker carries out ``body`` for each request."""
    return Environment(
        name="python",
        label="Python",
        framework="none",
        command=(sys.executable, "-c", HELLO.replace("BODY", body)),
    )
