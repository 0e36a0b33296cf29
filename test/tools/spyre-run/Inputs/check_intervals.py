# SPDX-License-Identifier: Apache-2.0
"""Checks intervals of kernels: check_intervals.py FOLDER [REPORT TRACE].

Without a report, writes the device's numbers to FOLDER/device.json.
"""

import json
import math
import sys
from pathlib import Path

KINDS = {
    "movement": (0.9, 2),
    "pointwise": (0.8, 3),
    "reduction": (0.7, 4),
    "product": (0.6, 5),
    "batchedProduct": (0.5, 6),
}
OPERATIONS = {
    "restickify": "movement",
    "reshard": "movement",
    "relu": "pointwise",
    "max": "reduction",
    "matmul": "product",
    "matmul batched": "batchedProduct",
}

folder, *given = map(Path, sys.argv[1:])
if not given:
    numbers = {}
    for kind, (low, high) in KINDS.items():
        numbers |= {f"{kind}TimeLow": low, f"{kind}TimeHigh": high}
    (folder / "device.json").write_text(json.dumps(numbers))
    sys.exit()

report, trace = (json.loads(file.read_text()) for file in given)
found, low, high = set(), 0.0, 0.0
for kernel in report["kernels"]:
    time, interval = kernel["predicted_seconds"], kernel["interval_seconds"]
    factors = tuple(round(bound / time, 9) for bound in interval)
    kinds = [kind for kind in KINDS if KINDS[kind] == factors]
    assert kinds, (kernel["name"], factors)
    name = next(name for name in OPERATIONS if name in kernel["name"])
    named = {kind for key, kind in OPERATIONS.items() if key.split()[0] == name}
    assert kinds[0] in named, (kernel["name"], kinds)
    found.add(kinds[0])
    low, high = low + interval[0], high + interval[1]
assert found == set(KINDS), found

launch = report["launch_seconds"]
for sum_, bound in zip((low, high), report["interval_seconds"], strict=True):
    assert math.isclose(sum_ + launch, bound, rel_tol=1e-9)

slices = [e["args"] for e in trace["traceEvents"] if "interval_us" in e.get("args", {})]
wanted = [[b * 1e6 for b in k["interval_seconds"]] for k in report["kernels"]]
assert [s["interval_us"] for s in slices] == wanted, slices
