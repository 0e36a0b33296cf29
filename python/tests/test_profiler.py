# SPDX-License-Identifier: Apache-2.0
"""torch.profiler shows the device's kernels; torch.spyre.profiler sums them."""

import itertools
import json
import threading
from collections import defaultdict

import pytest
import torch
from interpreters import run_python
from torch.profiler import ProfilerActivity, profile, record_function

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


@pytest.fixture(scope="module")
def operands():
    x = torch.randn(64, 64, dtype=torch.float16).to("spyre")
    work(x, x)  # compiles
    torch.spyre.synchronize()
    return x


def work(x, y):
    return torch.relu(x + y) @ y


def export(prof, tmp_path):
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())["traceEvents"]


def slices(events, category):
    return [e for e in events if e.get("cat") == category and e["ph"] == "X"]


def on_four_threads(run):
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def assert_no_overlap(kernels):
    lanes = defaultdict(list)
    for kernel in kernels:
        lanes[kernel["pid"], kernel["tid"]].append(kernel)
    for lane in lanes.values():
        lane.sort(key=lambda e: e["ts"])
        for before, after in itertools.pairwise(lane):
            # The file has nanoseconds.
            assert round((before["ts"] + before["dur"]) * 1e3) <= round(
                after["ts"] * 1e3
            )
    return lanes


def assert_nested(events):
    """Slices of a thread contain each other or are apart."""
    threads = defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event.get("cat") in (
            "cpu_op",
            "user_annotation",
            "privateuse1_runtime",
        ):
            start = round(event["ts"] * 1e3)
            threads[event["pid"], event["tid"]].append(
                (start, -(start + round(event["dur"] * 1e3)), event["name"])
            )
    for lane in threads.values():
        open_ends = []
        for start, end, name in sorted(lane):
            # Two clocks meet at a launch: a microsecond of difference, by which a
            # slice may begin before the one ahead of it has ended, or outlast its own.
            while open_ends and open_ends[-1] <= start + 1000:
                open_ends.pop()
            assert not open_ends or -end <= open_ends[-1] + 1000, name
            open_ends.append(-end)


def test_kernels_in_a_trace(operands, tmp_path):
    side = torch.spyre.Stream()
    with profile(activities=BOTH, profile_memory=True) as prof:
        with record_function("region"):
            work(operands, operands)
        with side:
            work(operands, operands)
        torch.spyre.synchronize()
    events = export(prof, tmp_path)
    kernels = slices(events, "kernel")
    names = [k["name"] for k in kernels]
    assert names == ["k0_add", "k0_relu", "k0_matmul"] * 2
    lanes = assert_no_overlap(kernels)
    assert sorted(lanes) == [(0, 0), (0, side.stream_id)]
    for kernel in kernels:
        about = kernel["args"]
        assert kernel["dur"] == pytest.approx(about["predicted time (us)"], abs=2e-3)
        assert about["bytes written"] == 64 * 64 * 2
        # The rows of a matmul are divided: eight cores load the other factor at once.
        matrices = {"k0_add": 2, "k0_relu": 1, "k0_matmul": 1 + -(-about["cores"] // 8)}
        assert about["bytes read"] == 64 * 64 * 2 * matrices[kernel["name"]]
        assert about["bottleneck"] in {
            *("pt", "sfu", "lx", "device memory", "ring", "latency")
        }
        assert about["stream"] == kernel["tid"]
    lane_names = {
        (e["pid"], e["tid"]): e["args"]["name"]
        for e in events
        if e["name"] == "thread_name"
    }
    assert lane_names[0, 0] == "stream 0"
    assert lane_names[0, side.stream_id] == f"stream {side.stream_id}"

    # Each kernel is tied to its launch, and that lies within its operator.
    launches = {
        e["args"]["correlation"]: e for e in slices(events, "privateuse1_runtime")
    }
    operators = {e["args"]["External id"]: e for e in slices(events, "cpu_op")}
    for kernel in kernels:
        launch = launches[kernel["args"]["correlation"]]
        assert launch["ts"] <= kernel["ts"] + 1
        operator = operators[launch["args"]["External id"]]
        assert operator["name"].removeprefix("aten::") in {"add", "relu", "mm"}
        assert kernel["args"]["External id"] == launch["args"]["External id"]
    flows = defaultdict(set)
    for event in events:
        if event.get("cat") == "ac2g":
            flows[event["id"]].add(event["ph"])
    assert {tuple(sorted(f)) for f in flows.values()} == {("f", "s")}
    assert_nested(events)
    (region,) = slices(events, "user_annotation")
    inside = [
        e
        for e in slices(events, "cpu_op")
        if region["ts"] <= e["ts"] <= region["ts"] + region["dur"]
    ]
    assert {e["name"] for e in inside} >= {"aten::add", "aten::relu", "aten::mm"}


def test_averages_have_device_times(operands):
    with profile(activities=BOTH) as prof, record_function("region"):
        work(operands, operands)
    averages = {a.key: a for a in prof.key_averages()}
    kernels = [averages[k] for k in ("k0_add", "k0_relu", "k0_matmul")]
    assert all(k.self_device_time_total > 0 for k in kernels)
    total = sum(k.self_device_time_total for k in kernels)
    assert averages["region"].device_time_total == pytest.approx(total)
    assert averages["aten::mm"].device_time_total == pytest.approx(
        averages["k0_matmul"].device_time_total
    )
    assert "SPYRE" in prof.key_averages().table()


def test_the_older_profiler(operands, capfd):
    """torch.autograd.profiler times operators by events of the device."""
    x = operands[0]
    with torch.autograd.profiler.profile(use_device="spyre") as trace:
        y = x + 1
        torch.ones(3).add(1)
        assert y.is_spyre
    added = [e for e in trace.function_events if e.name == "aten::add"]
    assert added[0].device_time_total > 0
    assert "SPYRE" in trace.key_averages().table()
    assert "Exception in RecordFunction" not in capfd.readouterr().err


def test_memory_events(operands, tmp_path):
    with profile(activities=BOTH, profile_memory=True) as prof:
        before = torch.spyre.memory_allocated()
        x = torch.empty(1000, dtype=torch.float16, device="spyre")
        y = x + x
        held = torch.spyre.memory_allocated()
        del x, y
        torch.spyre.synchronize()
    sizes = [
        (e["args"]["Bytes"], e["args"]["Total Allocated"])
        for e in sorted(export(prof, tmp_path), key=lambda e: e.get("ts", 0))
        if e["name"] == "[memory]" and e["args"]["Device Type"] == 20
    ]
    assert sum(size for size, _ in sizes) == 0
    assert {size for size, _ in sizes} == {2048, -2048}
    assert max(total for _, total in sizes) == held == before + 2 * 2048
    assert sizes[-1][1] == before


def test_many_threads_and_streams(operands, tmp_path):
    def run():
        with torch.spyre.Stream():
            for _ in range(8):
                work(operands, operands)

    with profile(activities=BOTH) as prof:
        on_four_threads(run)
    kernels = slices(export(prof, tmp_path), "kernel")
    assert len(kernels) == 4 * 8 * 3
    lanes = assert_no_overlap(kernels)
    assert len(lanes) == 4
    # A card runs one program at a time: nor do the lanes overlap.
    merged = sorted(kernels, key=lambda e: e["ts"])
    for before, after in itertools.pairwise(merged):
        assert before["ts"] + before["dur"] <= after["ts"] + 2e-3


def test_cpu_only_and_schedule(operands, tmp_path):
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        work(operands, operands)
    assert slices(export(prof, tmp_path), "kernel") == []
    traces = []
    with profile(
        activities=BOTH,
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2),
        on_trace_ready=lambda p: traces.append(export(p, tmp_path)),
    ) as prof:
        for _ in range(4):
            work(operands, operands)
            prof.step()
    (events,) = traces
    assert len(slices(events, "kernel")) == 2 * 3


def test_summary(operands):
    profiler = torch.spyre.profiler
    assert profiler.is_available()
    with profiler.profile() as prof:
        work(operands, operands)
        work(operands, operands)
    assert [k.name for k in prof.kernels] == ["k0_add", "k0_relu", "k0_matmul"] * 2
    rows = {r.name: r for r in prof.summary()}
    assert rows["k0_add"].calls == 2
    assert rows["k0_add"].device_bytes_read == 2 * 2 * 64 * 64 * 2
    assert rows["k0_matmul"].flops == 2 * 2 * 64**3
    seconds = sum(k.predicted_seconds for k in prof.kernels)
    assert sum(r.predicted_seconds for r in rows.values()) == pytest.approx(seconds)
    for row in rows.values():
        low, high = row.interval_seconds
        assert 0 < low < row.predicted_seconds < high
    times = [r.predicted_seconds for r in prof.summary()]
    assert times == sorted(times, reverse=True)
    assert [r.name for r in prof.summary("name")] == sorted(rows)
    table = prof.table(sort_by="calls", row_limit=2).splitlines()
    assert table[0].split()[:2] == ["kernel", "time"]
    assert len(table) == 5
    assert table[-1].startswith("6 kernels, ")
    with pytest.raises(ValueError, match="expected sort_by one of"):
        prof.table(sort_by="nonsense")
    with pytest.raises(RuntimeError, match="is not running"):
        prof.stop()


def test_summary_of_nothing():
    with torch.spyre.profiler.profile() as prof:
        pass
    assert prof.kernels == []
    assert prof.table().splitlines()[-1].startswith("0 kernels, 0.000 us")


def test_failing_work_leaves_no_kernel(operands):
    table = torch.zeros(4, 64, dtype=torch.float16, device="spyre")
    index = torch.tensor([9]).to("spyre")
    with pytest.raises(torch_spyre_error()):
        with torch.spyre.profiler.profile() as prof:
            torch.index_select(table, 0, index)
            work(operands, operands)  # dropped
        torch.spyre.synchronize()
    assert prof.kernels == []


def torch_spyre_error():
    import torch_spyre

    return torch_spyre.SpyreError


def test_transfers_in_a_trace(operands, tmp_path):
    host = torch.randn(128, 64, dtype=torch.float16)
    pinned = host.pin_memory()
    whole = torch.arange(4 * 64, dtype=torch.int64)
    with profile(activities=BOTH) as prof:
        x = host.to("spyre")
        y = whole.to("spyre")
        x.cpu()
        y[3].item()
        x.t()[1:].copy_(x.t()[:-1])  # overlaps: no program
        x.copy_(pinned, non_blocking=True)
        work(operands, operands)
        torch.spyre.synchronize()
    events = export(prof, tmp_path)
    copies = slices(events, "gpu_memcpy")
    found = sorted((c["name"], c["args"]["bytes"]) for c in copies)
    assert found == [
        ("copy device to device", 63 * 128 * 2),
        ("copy device to host", 4),
        ("copy device to host", 128 * 64 * 2),
        ("copy host to device", 4 * 64 * 4),
        ("copy host to device", 128 * 64 * 2),
        ("copy host to device", 128 * 64 * 2),
    ]
    lanes = assert_no_overlap([*copies, *slices(events, "kernel")])
    (lane,) = {(c["pid"], c["tid"]) for c in copies}
    assert lane not in {(k["pid"], k["tid"]) for k in slices(events, "kernel")}
    assert len(lanes[lane]) == len(copies)
    (name,) = {
        e["args"]["name"]
        for e in events
        if e["name"] == "thread_name" and (e["pid"], e["tid"]) == lane
    }
    assert name == "transfers"
    rate = 16 * 32e9 * 128 / 130 / 8  # PCIe 5.0 with 16 lanes
    calls = {e["args"]["correlation"]: e for e in slices(events, "privateuse1_runtime")}
    names = defaultdict(int)
    for copy in copies:
        about = copy["args"]
        assert copy["dur"] == pytest.approx(about["predicted time (us)"], abs=2e-3)
        if "host" in copy["name"]:
            assert about["predicted time (us)"] == pytest.approx(
                about["bytes"] / rate * 1e6
            )
        assert about["host time (us)"] > 0
        call = calls[about["correlation"]]
        names[call["name"]] += 1
        # Not before the call; one that waits ends after it.
        assert call["ts"] <= copy["ts"] + 1e-3
        if call["name"] == "spyreCopy":
            assert copy["ts"] + copy["dur"] <= call["ts"] + call["dur"] + 2e-3
    assert names == {"spyreCopy": 5, "spyreCopyAsync": 1}
    assert_nested(events)


def test_transfers_of_many_threads_follow_each_other(tmp_path):
    host = torch.randn(64, 64, dtype=torch.float16)

    def run():
        for _ in range(10):
            host.to("spyre").cpu()

    with profile(activities=BOTH) as prof:
        on_four_threads(run)
    copies = slices(export(prof, tmp_path), "gpu_memcpy")
    assert len(copies) == 4 * 10 * 2
    assert len(assert_no_overlap(copies)) == 1


def test_transfers_in_the_summary(operands):
    with torch.spyre.profiler.profile() as prof:
        x = torch.ones(100, dtype=torch.float32).to("spyre")
        x.cpu()
        x.cpu()
    assert [(t.kind, t.bytes) for t in prof.transfers] == [
        ("host to device", 400),
        ("device to host", 400),
        ("device to host", 400),
    ]
    lines = prof.table().splitlines()
    assert lines[-2].startswith("device to host: 2 transfers, ")
    assert lines[-1].startswith("host to device: 1 transfers, ")
    assert lines[-1].endswith("400 B")


def test_failed_transfers_leave_nothing():
    # The variable is read once in a process.
    script = """
import torch
with torch.spyre.profiler.profile() as prof:
    try:
        torch.tensor([1 << 40]).to("spyre")
        raise SystemExit("the transfer did not fail")
    except RuntimeError as error:
        assert "does not fit" in str(error), error
assert prof.transfers == [], prof.transfers
"""
    done = run_python(script, TORCH_SPYRE_DOWNCAST_ERROR="1")
    assert done.returncode == 0, done.stderr
