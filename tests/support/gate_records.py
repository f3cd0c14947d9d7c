"""Records of gates that were never measured: any number of launches, with drift, and with names from outside."""

import json
import random
from datetime import datetime, timedelta, timezone

from stele import schema
from stele.gate.metrics import METRICS

ARMS = ("old", "control", "new", "repeat")
FIRST = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
SETTINGS = {
    "device": "cpu", "precision": "fp32", "threads": 1, "deterministic": False, "seed": 0, "malloc": "steady",
}  # fmt: skip
MACHINE = {
    "name": "abacus", "system": "Linux 6.1", "architecture": "x86_64", "processor": "Abacus 3000", "processors": 2,
    "memory": 2**34, "governor": None, "huge_pages": None, "load": 0.1, "gpus": [],
}  # fmt: skip
CONDITIONS = {"seconds": 8.0, "steal": 0.0, "foreign": 0.01, "gpu": None}
MEMORY = 300 * 2**20


def header(*, old="torch==2.12.0", new="torch==2.13.0", cells=(("cnn", "train"), ("gru", "infer")), **more):
    metrics = [metric for metric in METRICS if metric.name != "device-memory"]
    return {
        "old": old,
        "new": new,
        "cells": [list(cell) for cell in cells],
        "metrics": {metric.name: metric.margin for metric in metrics},
        "tolerances": {metric.name: metric.tolerance for metric in metrics},
        "parity": True,
        "accuracy": False,
        "settings": SETTINGS,
        "scales": ["gate", "quick"],
        "seed": 0,
        "content": {"code": {"stele": "0" * 16}},
        "machine": MACHINE,
        **more,
    }


def run(draw, environment, cell, number, *, factor, steps, version):
    """Return the Run of a launch: a slow first step, three that are warm-up, and drift over the launches."""
    step = 0.010 * factor * (1 + 0.02 * number / 100) * draw.gauss(1, 0.004)
    seconds = [0.5 * factor * draw.gauss(1, 0.02), *(step * (1 + 0.5 / (one + 1) ** 2) for one in range(3))]
    seconds += [step * draw.gauss(1, 0.01) for _ in range(steps - 4)]
    return {
        "when": (FIRST + timedelta(seconds=8 * number)).isoformat(timespec="milliseconds"),
        "environment": environment,
        "label": "PyTorch",
        "task": cell[0],
        "phase": cell[1],
        "scale": "gate",
        "settings": SETTINGS,
        "framework": {
            "import_seconds": 1.2 * draw.gauss(1, 0.03),
            "versions": {"torch": version, "cuda": None},
            "flags": {
                "threads": 1,
                "onednn": True,
                "cpu_capability": "AVX2" if version == "2.12.0" else "AVX512",
            },
        },
        "options": {"turn": 1},
        "machine": MACHINE,
        "data": {"origin": "official", "fingerprint": "0"},
        "weights": "seeded",
        "steps": {
            "seconds": [float(f"{one:.6g}") for one in seconds],
            "warmup": min(4, steps - 2),
            "steady": True,
            "batch": 64,
        },
        "memory": {"host": int(MEMORY * draw.gauss(1, 0.002)), "device": None},
    }


def entries(facts, *, passes, factor, steps=24, seed=0):
    """Yield the lines of a record: parity, then passes of each cell. The steps of NEW take ``factor`` times as long."""
    draw, number = random.Random(seed), 0
    for task in dict.fromkeys(cell[0] for cell in facts["cells"]):
        for arm in ("old", "new"):
            yield {
                "key": ["parity", task, arm],
                "took": 20.0,
                "findings": [finding(draw, rung) for rung in range(1, 10)],
                "failure": None,
            }
    for one in range(passes):
        for cell in facts["cells"]:
            for kind in ("long", "short"):
                runs = {}
                for arm in draw.sample(ARMS, 4):
                    is_new, number = arm in ("new", "repeat"), number + 1
                    runs[arm] = run(
                        draw, facts["new" if is_new else "old"], cell, number, factor=factor if is_new else 1.0,
                        steps=steps if kind == "long" else 4, version="2.13.0" if is_new else "2.12.0",
                    )  # fmt: skip
                key = [kind, " ".join(cell), one]
                yield {"key": key, "runs": runs, "rounds": [], "conditions": CONDITIONS, "took": 8.0}


def finding(draw, rung):
    error = None if rung == 8 else 0.0 if rung in (1, 9) else 10 ** draw.uniform(-7.5, -6)
    limit = 1e-5 if error else None
    return {"rung": rung, "status": "agrees", "message": "", "error": error, "limit": limit, "where": None}


def last(verdicts=(), named=(), differences=()):
    """Return the last entry of a gate that ended."""
    return {
        "key": ["verdicts"], "took": 0.0, "verdicts": list(verdicts), "named": list(named),
        "differences": list(differences),
    }  # fmt: skip


def verdict(task="cnn", phase="train", metric="step", status="PASS", message="the same", ratio=(0.99, 1.0, 1.01)):
    values = None if ratio is None else dict(zip(("low", "middle", "high"), ratio, strict=True))
    return {
        "task": task, "phase": phase, "metric": metric, "status": status, "message": message, "ratio": values,
        "passes": 8, "p": 0.5, "needs": 60.0 if status == "INCONCLUSIVE" else None,
    }  # fmt: skip


def write(path, facts, lines):
    """Write a record, and return its path."""
    documents = [schema.wrap(facts), *lines]
    path.write_text("".join(json.dumps(one) + "\n" for one in documents), encoding="utf-8")
    return path


def gate(path, *, passes=4, factor=1.0, verdicts=(), **facts):
    """Write the record of a gate: of one that ended, if there are verdicts."""
    named = [{"name": "torch", "old": "2.12.0", "new": "2.13.0"}]
    differences = [{"name": "numpy", "old": "2.0.0", "new": "2.1.0"}]
    top = header(**facts)
    ended = [last(verdicts, named, differences)] if verdicts else []
    return write(path, top, [*entries(top, passes=passes, factor=factor), *ended])
