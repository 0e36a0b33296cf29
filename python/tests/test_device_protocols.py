# SPDX-License-Identifier: Apache-2.0
"""How PyTorch's own parts, and others, ask the device: Dynamo, DLPack, reports."""

import pickle

import numpy as np
import pytest
import torch
from interpreters import run_python
from numerics import compiled
from test_device_api import run_new
from torch_spyre import constants

TWO_CARDS = {"AIU_WORLD_SIZE": "2"}


def check_on_two_cards(code):
    result = run_python("import pytest, torch\n" + code, **TWO_CARDS)
    assert result.returncode == 0, result.stderr


# --- Dynamo ------------------------------------------------------------------


def test_dynamo_knows_the_device():
    code = """
from torch._dynamo.device_interface import DeviceGuard, get_interface_for_device
spyre = get_interface_for_device("spyre")
assert get_interface_for_device(torch.device("spyre:1")) is spyre
assert spyre.is_available() and spyre.device_count() == 2
assert spyre.get_device_properties(1) == torch.spyre.get_device_properties("spyre:1")
assert spyre.is_dtype_supported(torch.bfloat16) and not spyre.is_triton_capable()
assert spyre.Stream is torch.spyre.Stream and spyre.Event is torch.spyre.Event
with DeviceGuard(spyre, 1):
    assert spyre.current_device() == torch.spyre.current_device() == 1
    assert spyre.maybe_exchange_device(-1) == 1 and spyre.exchange_device(1) == 1
assert spyre.current_device() == 0
stream = torch.spyre.Stream()
spyre._set_stream_by_id(stream.stream_id, stream.device_index, stream.device_type)
assert spyre.current_stream() == stream == torch.spyre.current_stream()
assert spyre.get_raw_stream(0) == stream.stream_id and spyre.get_raw_stream(1) == 0
with pytest.raises(IndexError):
    spyre.exchange_device(2)
"""
    check_on_two_cards(code)


def test_numbers_of_compiled_functions_go_where_the_tensors_are():
    code = """
function = torch.compile(lambda x, c: x * c + 1, backend="spyre")
for number in (0.5, 0.25, 0.125, torch.tensor(3)):
    for device in ("spyre:1", "spyre:0"):
        y = function(torch.ones(5, device=device), number)
        assert y.device == torch.device(device) and y.eq(number + 1).all()
"""
    check_on_two_cards(code)


def test_importing_dynamo_late_or_early():
    check = "from torch._dynamo.device_interface import get_interface_for_device as g; "
    check += "assert g('spyre').__name__ == 'SpyreInterface'; "
    check += "x = torch.ones(3, device='spyre'); "
    check += "assert torch.compile(lambda x: x + 1, fullgraph=True)(x).eq(2).all(); "
    check += "from torch_spyre.compile_backend import compiled_parts; "
    check += "assert len(compiled_parts()) == 1"
    early = "import os; os.environ['TORCH_DEVICE_BACKEND_AUTOLOAD'] = '0'; "
    early += "import torch._dynamo, torch_spyre; "
    for first in ("import torch; ", early):
        result = run_new(first + check)
        assert result.returncode == 0, result.stderr


def test_streams_in_compiled_functions():
    def function(x):
        current = torch.spyre.current_stream()
        side = torch.spyre.Stream()
        side.wait_stream(current)
        with torch.spyre.stream(side):
            y = x * 2
        current.wait_event(side.record_event())
        event = torch.spyre.Event()
        event.record()
        event.synchronize()
        torch.spyre.synchronize()
        count = torch.spyre.get_device_properties(x.device).multi_processor_count
        return y * count + torch.spyre.current_device()

    x = torch.ones(4, device="spyre")
    f = compiled(function)
    assert f(x).tolist() == [64] * 4
    with torch.spyre.stream(torch.spyre.Stream()) as stream:
        assert f(x).tolist() == [64] * 4
    stream.synchronize()


# --- streams, events, generators ---------------------------------------------


def test_streams_are_of_the_devices_class():
    side = torch.spyre.Stream()
    with torch.spyre.stream(side):
        current = torch.spyre.current_stream()
    assert type(current) is type(torch.spyre.default_stream()) is torch.spyre.Stream
    assert current == side and hash(current) == hash(side) and current.id == side.id
    assert repr(side) == f"<torch_spyre.Stream device=0 id={side.id}>"
    event = side.record_event()
    assert type(event) is torch.spyre.Event
    assert side.record_event(event) is event
    event.synchronize()
    assert event.query()


def test_events_and_generators_of_another_card():
    code = """
event = torch.spyre.Event(device=1)
event.record(torch.spyre.current_stream(1))
event.synchronize()
with pytest.raises(RuntimeError, match="cannot be recorded on a stream of spyre:0"):
    event.record(torch.spyre.Stream(0))
torch.spyre.Stream(0).wait_event(event)
with pytest.raises(ValueError, match="expected an event of spyre:1"):
    event.elapsed_time(torch.spyre.Event(device=0))
other = torch.Generator("spyre:1")
x = torch.ones(3, device="spyre:0")
for draw in (
    lambda: torch.randn(3, device="spyre:0", generator=other),
    lambda: torch.empty_like(x).normal_(generator=other),
    lambda: torch.bernoulli(x / 2, generator=other),
    lambda: torch.randperm(3, device="spyre:0", generator=other),
    lambda: torch.randint(5, (3,), device="spyre:0", generator=other),
    lambda: torch.multinomial(x, 1, generator=other),
):
    with pytest.raises(RuntimeError, match="generator of spyre:0, found .*spyre:1"):
        draw()
assert torch.rand(3, device="spyre:1", generator=other).device.index == 1
"""
    check_on_two_cards(code)


# --- memory ------------------------------------------------------------------


def test_reports_of_memory(tmp_path):
    x = torch.ones(1 << 20, device="spyre")
    summary = torch.spyre.memory_summary()
    assert "Allocated memory" in summary and "Allocations" in summary
    assert "Allocations" not in torch.spyre.memory_summary(abbreviated=True)
    nested = torch.spyre.memory_stats_as_nested_dict()
    current = nested["allocated_bytes"]["all"]["current"]
    assert current == torch.spyre.memory_allocated() >= x.nbytes
    with pytest.raises(torch.spyre.OutOfMemoryError):
        torch.empty(1 << 40, device="spyre")

    # What draws CUDA's snapshots takes them.
    from torch.cuda import _memory_viz

    file = tmp_path / "snapshot.pickle"
    torch.spyre.memory._dump_snapshot(str(file))
    snapshot = pickle.loads(file.read_bytes())
    assert "segments: 1" in _memory_viz.segsum(snapshot)
    assert _memory_viz.segment_plot(snapshot)


def test_graphs_are_refused():
    with pytest.raises(RuntimeError, match=r"Graph is not supported.*spyre"):
        torch.accelerator.Graph()


# --- exchange ----------------------------------------------------------------


def test_dlpack():
    x = torch.arange(6.0).spyre()
    from torch.utils.dlpack import DLDeviceType

    assert x.__dlpack_device__() == (DLDeviceType.kDLExtDev, 0)
    assert x.cpu().__dlpack_device__() == (DLDeviceType.kDLCPU, 0)
    assert torch.equal(torch.from_dlpack(x, device="cpu"), x.cpu())
    assert np.from_dlpack(x, device="cpu").tolist() == x.tolist()
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(x)
    same = torch.from_dlpack(x)
    assert same.is_spyre and torch.equal((same + 1).cpu(), x.cpu() + 1)


def test_export_moves_and_compiles(tmp_path):
    from torch.export.passes import move_to_device_pass

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.GELU()).eval()
    x = torch.randn(3, 5)
    wanted = module(x)
    program = torch.export.export(module, (x,))
    moved = move_to_device_pass(program, "spyre")
    torch.export.save(moved, tmp_path / "program.pt2")
    loaded = torch.export.load(tmp_path / "program.pt2")
    for run in (
        moved.module(),
        loaded.module(),
        compiled(moved.module()),
        torch.export.export(module.spyre(), (x.spyre(),)).module(),
    ):
        torch.testing.assert_close(run(x.spyre()).cpu(), wanted, rtol=1e-5, atol=1e-5)


def test_loader_with_pinned_memory():
    data = torch.utils.data.TensorDataset(torch.arange(12.0).view(6, 2))
    loader = torch.utils.data.DataLoader(data, batch_size=3, pin_memory=True)
    seen = []
    for (batch,) in loader:
        assert batch.is_pinned()
        moved = batch.to(constants.DEVICE_NAME, non_blocking=True)
        seen.append((moved * 2).cpu())
    assert torch.equal(torch.cat(seen), torch.arange(12.0).view(6, 2) * 2)
