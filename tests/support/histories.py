"""Releases of abacus that are measured with scripted numbers."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from stele import environments
from stele.measuring import measure
from stele.measuring.measure import SideFailed
from stele.measuring.run import Origin
from stele.measuring.settings import Settings
from stele.measuring.worker import WorkerError
from stele.releases import campaign, frameworks, ledger, trend
from stele.releases.campaign import Request
from stele.releases.index import Release
from stele.subjects import Cell
from tests.support.runs import changed

ABACUS = [
    Release("abacus", "1.0", "2024-01-01T00:00:00+00:00"),
    Release("abacus", "1.1", "2024-02-01T12:00:00+00:00"),
    Release("abacus", "1.0.1", "2024-03-01T00:00:00+00:00"),
]


def file(date="2024-01-01T00:00:00.123456Z", yanked=False, packagetype="bdist_wheel"):
    return {"packagetype": packagetype, "yanked": yanked, "upload_time_iso_8601": date}


@pytest.fixture
def serve(monkeypatch):
    """serve(answer, status) starts an index that gives this answer to every request."""
    servers = []

    def serve(answer, status=200):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                self.end_headers()
                self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

            def log_message(self, *_):
                pass

        servers.append(HTTPServer(("127.0.0.1", 0), Handler))
        server = threading.Thread(target=servers[-1].serve_forever, args=[0.01], daemon=True)
        server.start()
        monkeypatch.setenv("STELE_INDEX", f"http://127.0.0.1:{servers[-1].server_port}")

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def environment(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return environments.Environment(
        name="abacus",
        label="Abacus",
        framework="abacus",
        requirements={"abacus>=1": "the framework", "beads==2": "what it counts with"},
    )


INPUTS = {"data": None, "data_origin": Origin(origin="official", fingerprint="0")}
FOUR = [f"1.{number}" for number in range(1, 5)]
TAGS = [f"abacus-{name}" for name in FOUR]
CELL = "gru infer tuned"


@pytest.fixture
def abacus(add_environment, monkeypatch, tmp_path):
    """A ledger of four releases of abacus, and a home folder without asv's files. Otava is not available."""
    monkeypatch.setattr(trend, "otava_changes", lambda lines: None)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    add_environment("abacus", absent={"gru train": "it only infers", "cnn": "no images"})
    path = environments.folders()[1] / "abacus.toml"
    path.write_text('python = ">=3.10"\n' + path.read_text() + '[requirements]\n"abacus" = "the framework"\n')
    environments.described.cache_clear()
    releases = [Release("abacus", name, f"2024-01-0{number}T00:00:00+00:00") for number, name in enumerate(FOUR, 1)]
    ledger.add("abacus", frameworks.environment_of("abacus"), releases)


@pytest.fixture
def machine(abacus, run, monkeypatch):
    """machine(factors) -> a list that receives the releases timed together.

    A release is slower by its factor. Releases without a factor fail.
    """
    timed = []
    monkeypatch.setattr(
        measure,
        "inputs",
        lambda task: (INPUTS, None),
    )
    monkeypatch.setattr(campaign.builds, "make", lambda environment: True)

    def machine(factors, speed=1.0):
        def side_by_side(sides, plan, settings, **_):
            if plan.scale == "gate":
                timed.append(sorted(sides))
            for side in sides:
                if side not in factors:
                    raise SideFailed(side, WorkerError(f"'{side}' crashed"))
            return {side: slowed(run, side, speed * factors[side], plan, settings) for side in sides}

        monkeypatch.setattr(measure, "side_by_side", side_by_side)
        return timed

    return machine


def slowed(run, side, factor, plan, settings):
    return changed(
        run,
        when=f"2026-01-01T00:00:00.{time.monotonic_ns() % 10**6:06}",
        environment=side,
        task=plan.task,
        phase=plan.phase,
        options={"turn": 1},
        memory={"host": run.memory.host if settings.malloc == "mmap" else 2 * run.memory.host},
        steps={"seconds": tuple(factor * second for second in run.steps.seconds)},
    )


def request(**fields):
    defaults = {
        "cells": (Cell("gru", "train"), Cell("gru", "infer")),
        "settings": Settings(device="cpu", threads=1),
        "launches": 3,
        "scale": "gate",
        "error": None,
        "deadline": time.monotonic() + 60,
        "say": lambda message: None,
    }
    return Request(**{**defaults, **fields})


# the commands


OPTIONS = ["--task=gru", "--phase=infer", "--launches=2"]
