# SPDX-License-Identifier: Apache-2.0
"""Streams, events, failures, memory, life cycle."""

import gc
import threading
import time

import pytest
import torch
import torch_spyre
from interpreters import run_python
from torch_spyre import _C

pytestmark = pytest.mark.usefixtures("no_fallback")
F16 = torch.float16


def whole(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-4, 5, shape, generator=generator).to(F16)


def failing(x):
    """An operator that fails on the device, not before."""
    return x.index_select(0, torch.tensor([x.shape[0] + 3], device=x.device))


@pytest.fixture(autouse=True)
def _clean_streams():
    torch.spyre.synchronize()
    yield
    torch.spyre.synchronize()


# --- streams ---------------------------------------------------------------------------


def test_pools_go_round():
    low = [torch.spyre.Stream() for _ in range(33)]
    high = [torch.spyre.Stream(priority=-1) for _ in range(33)]
    assert sorted(s.id for s in low[:32]) == list(range(1, 33))
    assert sorted(s.id for s in high[:32]) == list(range(33, 65))
    assert low[32] == low[0]
    assert high[32].id == high[0].id
    assert {s.priority for s in low} == {0}
    assert {s.priority for s in high} == {-1}
    assert torch.spyre.Stream(priority=3).id > 32
    assert torch.spyre.default_stream().stream_id == 0
    assert isinstance(low[0], torch.Stream)


def test_current_stream_is_the_threads():
    stream = torch.spyre.Stream()
    seen = []
    with torch.spyre.stream(stream):
        assert torch.spyre.current_stream() == stream
        thread = threading.Thread(
            target=lambda: seen.append(torch.spyre.current_stream().stream_id)
        )
        thread.start()
        thread.join()
    assert seen == [0]
    assert torch.spyre.current_stream().stream_id == 0
    torch.spyre.set_stream(stream)
    assert torch.spyre.current_stream() == stream
    torch.spyre.set_stream(torch.spyre.default_stream())


def test_unknown_stream_is_an_error():
    kind = torch._C._autograd.DeviceType.PrivateUse1.value
    stranger = torch.Stream(stream_id=99, device_index=0, device_type=kind)
    with pytest.raises(RuntimeError, match="no stream 99"):
        torch.spyre.set_stream(stranger)
    with pytest.raises(RuntimeError, match="no stream 99"):
        stranger.synchronize()


def test_work_is_asynchronous_and_ordered():
    x = (whole(512, 512) / 64).to("spyre")
    x @ x  # compiled
    torch.spyre.synchronize()
    stream = torch.spyre.Stream()
    end = torch.spyre.Event()
    with stream:
        y = x
        for _ in range(10):
            y = y @ x
        end.record()
    assert not end.query()
    assert not stream.query()
    assert torch.spyre.default_stream().query()
    end.synchronize()
    assert end.query()
    stream.synchronize()
    assert stream.query()
    expected = x
    for _ in range(10):
        expected = expected @ x
    assert torch.equal(y.cpu(), expected.cpu())


def test_events_order_streams():
    x = whole(256, 256).to("spyre")
    one, two = torch.spyre.Stream(), torch.spyre.Stream()
    for _ in range(5):
        with one:
            y = x
            for _ in range(5):
                y = y + x
            event = one.record_event()
        two.wait_event(event)
        with two:
            z = y * 2
        assert torch.equal(z.cpu(), x.cpu() * 12)
    two.wait_stream(one)


def test_storages_order_streams():
    """Without events: what is written is not read before, nor overwritten too soon."""
    x = (torch.eye(512) * 2).to("spyre")
    pinned = torch.full((512, 512), 7.0).pin_memory()
    one, two = torch.spyre.Stream(), torch.spyre.Stream()
    for _ in range(2):  # compiled the first time
        given = x.clone()
        torch.spyre.synchronize()
        with one:
            for _ in range(4):
                given.copy_(given @ x)
        with two:
            read = given + 1
            given.copy_(pinned, non_blocking=True)
        with one:
            late = given * 2
        assert torch.equal(read.cpu(), torch.eye(512) * 32 + 1)
        assert torch.equal(late.cpu(), pinned * 2)


def test_event_times():
    x = whole(256, 256).to("spyre")
    x @ x
    torch.spyre.synchronize()
    start, middle, end = (torch.spyre.Event() for _ in range(3))
    with pytest.raises(RuntimeError, match="record both events and call synchronize"):
        start.elapsed_time(end)
    start.record()
    x @ x
    middle.record()
    x @ x
    end.record()
    end.synchronize()
    assert 0 < start.elapsed_time(middle) < start.elapsed_time(end)
    assert end.elapsed_time(start) == -start.elapsed_time(end)
    assert start.host_elapsed_time(end) > 0
    plain = torch.Event("spyre", enable_timing=True)
    plain.record()
    plain.synchronize()
    assert start.elapsed_time(plain) >= start.elapsed_time(end)
    with pytest.raises(ValueError, match="expected an event"):
        start.elapsed_time(torch.Event("cpu"))


def test_storages_outlive_their_work():
    x = whole(256, 256).to("spyre")
    results = []
    for i in range(20):
        y = x + i
        results.append(y * 2)
        del y
    for i, r in enumerate(results):
        assert torch.equal(r.cpu(), (x.cpu() + i) * 2)


def test_host_writes_wait_for_readers():
    x = whole(256, 256).to("spyre")
    for i in range(5):
        before = x.cpu()
        y = x @ x
        x.copy_(whole(256, 256, seed=i))
        assert torch.equal(y.cpu(), (before.to("spyre") @ before.to("spyre")).cpu())


def test_soak_over_threads_and_streams():
    failures = []
    torch.spyre.synchronize()
    before = torch.spyre.memory_allocated()

    def work(seed):
        try:
            streams = [torch.spyre.Stream() for _ in range(3)]
            host = whole(9, 70, seed=seed)
            device = host.to("spyre")
            torch.spyre.synchronize()
            for i in range(60):
                with streams[i % 3] as stream:
                    a = device + (i % 7)
                    b = a * 2
                    b[1:3].sub_(a[0])
                    a = stream.record_event()
                if i % 5 == 0:
                    expected = (host + i % 7) * 2
                    expected[1:3] -= (host + i % 7)[0]
                    assert torch.equal(b.cpu(), expected)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    torch.spyre.synchronize()
    assert torch.spyre.memory_allocated() == before


# --- failures --------------------------------------------------------------------------


def test_failure_is_raised_once_at_a_synchronising_call():
    x = whole(3, 70).to("spyre")
    stream = torch.spyre.Stream()
    with stream:
        y = failing(x)
        z = y + 1
        w = x + 1
    with pytest.raises(torch_spyre.SpyreError, match=r"aten\.index.*outside its range"):
        torch.spyre.synchronize()
    torch.spyre.synchronize()
    for lost in (y, z, w):
        with pytest.raises(RuntimeError, match="outside its range"):
            lost.cpu()
        with pytest.raises(RuntimeError, match="outside its range"):
            lost.sum().item()
    with stream:
        assert torch.equal((x + 1).cpu(), x.cpu() + 1)
    z.copy_(x[:1])
    assert torch.equal(z.cpu(), x[:1].cpu())


def test_failures_of_operators_that_are_taken_apart_name_them():
    x = torch.zeros(3, 4, device="spyre")
    torch.nn.functional.cross_entropy(x, torch.tensor([1, 2, 9], device="spyre"))
    with pytest.raises(RuntimeError, match=r"aten\.nll_loss.*outside its range"):
        torch.spyre.synchronize()


def test_failure_of_short_work_is_raised_as_late():
    """The launching thread may run the program: its call raises nothing."""
    x = whole(64).to("spyre")
    good = torch.tensor([3], device="spyre")
    bad = torch.tensor([64 + 3], device="spyre")
    for _ in range(20):
        assert x.index_select(0, good).cpu() == x.cpu()[3]
    result = x.index_select(0, bad)
    dropped = x + 1
    with pytest.raises(RuntimeError, match="outside its range"):
        torch.spyre.synchronize()
    for tensor in (result, dropped):
        with pytest.raises(RuntimeError, match="outside its range"):
            tensor.cpu()
    assert torch.equal((x + 1).cpu(), x.cpu() + 1)


def test_reading_raises_and_makes_usable():
    x = whole(3, 70).to("spyre")
    y = failing(x)
    with pytest.raises(RuntimeError, match="outside its range"):
        y.cpu()
    assert torch.equal((x + 1).cpu(), x.cpu() + 1)


def test_other_streams_go_on():
    x = whole(3, 70).to("spyre")
    stream = torch.spyre.Stream()
    with stream:
        failing(x)
    assert torch.equal((x + 1).cpu(), x.cpu() + 1)
    with pytest.raises(RuntimeError, match="outside its range"):
        stream.synchronize()


def test_blocking_launches():
    code = """
import torch
x = torch.ones(3, 70, dtype=torch.float16, device="spyre")
try:
    x.index_select(0, torch.tensor([7], device="spyre"))
except RuntimeError as error:
    print("raised", "outside its range" in str(error))
"""
    done = run_python(code, ends_at_once=True, SPYRE_LAUNCH_BLOCKING="1")
    assert done.stdout.strip() == "raised True"


# --- memory ----------------------------------------------------------------------------


def test_statistics_and_snapshot():
    gc.collect()  # What other tests left must not go away in between.
    torch.spyre.synchronize()
    base = torch.spyre.memory_allocated()
    torch.spyre.reset_peak_memory_stats()
    x = torch.empty(1000, dtype=F16, device="spyre")
    y = torch.empty(64, dtype=F16, device="spyre")
    assert torch.spyre.memory_allocated() == base + 2048 + 128
    assert torch.accelerator.memory_allocated() == base + 2048 + 128
    segments = torch.spyre.memory._snapshot()["segments"]
    (blocks,) = [s["blocks"] for s in segments]
    live = {b["address"]: b for b in blocks if b["state"] == "active_allocated"}
    assert live[x.untyped_storage().data_ptr()]["size"] == 2048
    assert live[y.untyped_storage().data_ptr()]["size"] == 128
    assert segments[0]["allocated_size"] == base + 2048 + 128
    assert segments[0]["total_size"] == torch.spyre.memory_reserved()
    address = x.untyped_storage().data_ptr()
    del x
    assert torch.spyre.memory_allocated() == base + 128
    assert torch.spyre.max_memory_allocated() == base + 2048 + 128
    again = torch.empty(1000, dtype=F16, device="spyre")
    assert again.untyped_storage().data_ptr() == address
    del again, y
    torch.spyre.empty_cache()
    assert torch.spyre.memory_reserved() <= torch.spyre.max_memory_reserved()


def test_out_of_memory():
    before = torch.spyre.memory_stats()["num_ooms"]
    with pytest.raises(torch.OutOfMemoryError, match=r"spyre:0.*bytes requested"):
        torch.empty(2**40, dtype=torch.int8, device="spyre")
    assert torch.spyre.memory_stats()["num_ooms"] == before + 1
    assert torch.ones(3, device="spyre").cpu().sum() == 3


def test_poisoned_blocks():
    code = """
import torch
x = torch.zeros(64, dtype=torch.float16, device="spyre")
torch.spyre.synchronize()
del x
assert torch.empty(64, dtype=torch.float16, device="spyre").cpu().isinf().all()
"""
    result = run_python(code, ends_at_once=True, SPYRE_POISON_FREED="1")
    assert result.returncode == 0, result.stderr


# --- life cycle ------------------------------------------------------------------------


def test_initialised_by_use():
    code = """
import torch
assert torch.spyre.is_available() and not torch.spyre.is_initialized()
torch.manual_seed(1)
torch.spyre.init()
assert torch.spyre.is_initialized()
"""
    result = run_python(code)
    assert result.returncode == 0, result.stderr


def test_fork():
    code = """
import os, signal, torch
def child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]
def use():
    assert (torch.ones(3, device="spyre") + 1).cpu().sum() == 6
# The parent has used none: Dynamo asks for the stream of any device that there is.
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
assert not torch.spyre.is_initialized()
assert child(use) == 0
x = torch.ones(3, 70, device="spyre")
y = x + 1
assert child(use) != 0
z = torch.zeros(700, 700, device="spyre")
for _ in range(9):
    z = z @ z  # not done when the children begin
def reading(change):
    def work():
        signal.alarm(20)
        change()
    return work
assert child(reading(z.cpu)) != 0
assert child(reading(lambda: z.copy_(torch.ones(700, 700)))) != 0
assert child(reading(lambda: z.untyped_storage().resize_(99))) != 0
assert child(reading(y.cpu)) != 0  # is done
def harmless():
    global x, y, z
    assert torch.spyre._is_in_bad_fork() and not torch.spyre.is_initialized()
    torch.manual_seed(3)
    del x, y, z
assert child(harmless) == 0
assert (y + 1).cpu().sum() == 630 and z.cpu().sum() == 0
"""
    result = run_python(code)
    assert result.returncode == 0, result.stderr + result.stdout
    errors = result.stdout.splitlines()
    assert len(errors) == 5 and all("forked process" in e for e in errors)
    assert all("spawn" in e for e in errors)


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({}, 1),
        ({"AIU_WORLD_SIZE": "8"}, 8),
        ({"SPYRE_DEVICES": "0,3,3"}, 2),
        ({"SPYRE_DEVICES": "0,1,2", "AIU_WORLD_SIZE": "2"}, 2),
        ({"FLEX_DEVICE": "MOCK", "AIU_WORLD_SIZE": "4"}, 4),
        ({"AIU_WORLD_SIZE": "9"}, "AIU_WORLD_SIZE"),
        ({"SPYRE_DEVICES": "0,x"}, "SPYRE_DEVICES"),
        ({"FLEX_DEVICE": "QF"}, "FLEX_DEVICE"),
    ],
    ids=str,
)
def test_device_count(environment, count):
    code = "import torch; print(torch.spyre.device_count())"
    result = run_python(code, ends_at_once=True, **environment)
    if isinstance(count, int):
        assert result.stdout.strip() == str(count), result.stderr
    else:
        assert result.returncode == 1
        assert count in result.stderr


def test_exit_with_work_in_streams():
    code = """
import threading, torch
x = torch.ones(256, 256, dtype=torch.float16, device="spyre")
def work():
    with torch.spyre.Stream():
        for _ in range(20):
            y = x @ x
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
z = x @ x
"""
    result = run_python(code)
    assert (result.returncode, result.stderr) == (0, "")


def test_exit_while_gradients_are_computed():
    """The thread that computes them needs Python's lock, which ends with Python."""
    code = """
import threading, time, torch
started = threading.Event()
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        started.set()
        time.sleep(0.3)
        print("done", flush=True)
        return grad
class Failing(Slow):
    @staticmethod
    def backward(ctx, grad):
        started.wait()
        raise ValueError("failed")
x = torch.ones(3, device="spyre", requires_grad=True)
y = torch.ones(3, requires_grad=True)
loss = (Failing.apply(y) + Slow.apply(x).cpu()).sum()
try:
    loss.backward()
except ValueError:
    print("failed", flush=True)
"""
    result = run_python(code)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "failed\ndone\n"


def test_exit_of_a_fork_after_gradients():
    code = """
import os, sys, torch
# So long the child would wait for the threads that PyTorch had in the parent.
os.environ["TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT"] = "0"
torch.ones(3, requires_grad=True).sum().backward()
pid = os.fork()
if pid == 0:
    assert (torch.ones(3, device="spyre") + 1).cpu().sum() == 6
    sys.exit()
assert os.waitpid(pid, 0)[1] == 0
"""
    result = run_python(code)
    assert (result.returncode, result.stderr) == (0, "")


# --- API -------------------------------------------------------------------------------

NAMES = """
is_available is_initialized init device_count current_device set_device device
synchronize Stream stream current_stream default_stream set_stream Event
default_generators manual_seed manual_seed_all seed seed_all initial_seed
get_rng_state set_rng_state get_rng_state_all set_rng_state_all memory_allocated
max_memory_allocated memory_reserved max_memory_reserved memory_stats
reset_peak_memory_stats empty_cache mem_get_info get_device_properties
get_device_name get_amp_supported_dtype memory
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_names(name):
    assert getattr(torch.spyre, name) is not None


def test_properties_and_seeds():
    properties = torch.spyre.get_device_properties()
    assert properties.total_memory == torch.spyre.mem_get_info()[1]
    assert properties.multi_processor_count == 32
    assert properties.lx_memory_per_core == 2097152
    assert len(torch.spyre.default_generators) == torch.spyre.device_count()
    seed = torch.spyre.seed()
    assert torch.spyre.initial_seed() == seed
    torch.accelerator.empty_host_cache()
    with pytest.raises(RuntimeError, match="not supported"):
        torch.accelerator.Graph()
    from torch_spyre.constants import DEVICE_NAME

    assert DEVICE_NAME == "spyre"
    assert _C.device_count() == torch.spyre.device_count()


def test_stream_bindings():
    stream = _C.get_stream_from_pool(0, 1)
    assert stream.id > 32
    assert _C.set_current_stream(stream).stream_id == 0
    assert _C.current_stream(0) == stream
    assert _C.set_current_stream(_C.default_stream(0)) == stream
    x = torch.empty(3, device="spyre")
    assert _C.copy_tensor(torch.ones(3), x) is x
    assert x.cpu().tolist() == [1, 1, 1]


def slow_work(x):
    """Enough to keep a stream busy for a while."""
    for _ in range(4):
        x = x @ x
    return x


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64])
def test_pinned_copies_do_not_wait(dtype):
    x = torch.full((512, 512), 2.0**-9, dtype=torch.float16).to("spyre")
    slow_work(x)
    torch.spyre.synchronize()
    host = torch.arange(63 * 65).view(63, 65).to(dtype).pin_memory()
    result = slow_work(x)
    started = time.perf_counter()
    copy = host.to("spyre", non_blocking=True)
    there = copy.to("cpu", non_blocking=True)
    queued = time.perf_counter() - started
    busy = not torch.spyre.current_stream().query()
    torch.spyre.synchronize()
    waited = time.perf_counter() - started
    assert there.is_pinned()
    assert torch.equal(there, host.to("spyre").cpu())
    assert torch.equal(copy.cpu(), there)
    assert busy and queued < waited / 2
    assert result[0, 0].item() == 2.0**-9


def test_pinned_copies_are_ordered_and_keep_their_memory():
    x = torch.zeros(128, 128, dtype=torch.float16).to("spyre")
    for value in range(8):
        host = torch.full((128, 128), float(value), dtype=torch.float16).pin_memory()
        x.copy_(host, non_blocking=True)
        del host  # still in use: its memory must not be given away
        y = x + 1
    back = torch.empty(128, 128, dtype=torch.float16).pin_memory()
    back.copy_(y, non_blocking=True)
    torch.spyre.synchronize()
    assert (back == 8).all()
    # Unpinned memory, other strides and dtypes: done when the call returns.
    plain = torch.full((128, 128), 5.0)
    x.copy_(plain, non_blocking=True)
    plain.zero_()
    assert (x.cpu() == 5).all()
    x.copy_(back.t(), non_blocking=True)
    assert (x.cpu() == 8).all()
