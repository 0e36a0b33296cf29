# SPDX-License-Identifier: Apache-2.0
"""Checks a Chrome trace: check_trace.py TRACE REPORT PROGRAM CORES."""

import itertools
import json
import sys
from collections import defaultdict

trace_file, report_file, program, cores = sys.argv[1:]
with open(trace_file) as file:
    events = json.load(file)["traceEvents"]
with open(report_file) as file:
    report = json.load(file)

names = {
    (e["pid"], e.get("tid")): e["args"]["name"]
    for e in events
    if e["ph"] == "M" and e["name"] in ("process_name", "thread_name")
}
processes = [name for (_, tid), name in names.items() if tid is None]
wanted = {"program", "device memory"} | {f"core {c}" for c in range(int(cores))}
assert set(processes) == wanted, processes

lanes = defaultdict(list)
for e in events:
    if e["ph"] == "X":
        assert e["args"]["location"].split(":")[0].endswith(program), e
        lanes[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
for lane, slices in lanes.items():
    assert lane in names, lane
    slices.sort()
    for (_, end), (start, _) in itertools.pairwise(slices):
        assert start >= end - 1e-9, (lane, start, end)
    assert slices[-1][1] <= report["predicted_seconds"] * 1e6 + 1e-9

# Four tiles on each core, through every unit that they need; two of each at a time.
for pid, name in {p: n for (p, t), n in names.items() if t is None}.items():
    if not name.startswith("core"):
        continue
    units = {names[lane]: len(s) for lane, s in lanes.items() if lane[0] == pid}
    assert units == {"load": 4, "sfu": 4, "store": 4}, units
    counter = [e["args"]["bytes"] for e in events if e["ph"] == "C" and e["pid"] == pid]
    assert counter[-1] == 0 and 2 * 2048 <= max(counter) <= 4 * 2048, counter
