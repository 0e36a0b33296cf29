# SPDX-License-Identifier: Apache-2.0
"""torch.spyre, modules, random numbers, memory, bad input."""

import copy
import subprocess
import sys

import pytest
import torch
import torch_spyre
from interpreters import run_python
from reference import assert_same, round_dl16
from torch_spyre import _C

ignore_fallbacks = pytest.mark.filterwarnings("ignore:.*has no spyre kernel")


def run_new(code, **environment):
    """In a process that has imported nothing, torch neither."""
    import os

    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def check_each(code, values, run=run_new):
    """Calls the ``check`` of ``code`` with each value, in a fork of its own.

    A variable of the environment is read once per process.
    """
    code += f"""
for value in {values!r}:
    child = os.fork()
    if child == 0:
        try:
            check(value)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, value
"""
    result = run(code)
    assert result.returncode == 0, result.stderr


# --- loading -----------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "import torch",
        "import torch, torch_spyre",
        "import torch_spyre; import torch",
        "import torch_spyre._C; import torch",
        "import torch_spyre; torch_spyre._autoload(); torch_spyre._autoload(); "
        "import torch",
    ],
)
def test_import_orders(code):
    """None imports the compiler."""
    code += (
        "; import sys; assert hasattr(torch, 'spyre'); "
        "assert 'torch._dynamo' not in sys.modules; "
        "assert 'torch._inductor' not in sys.modules"
        "; x = torch.ones(3).to('spyre'); assert x.is_spyre, x; "
        "assert x.cpu().tolist() == [1, 1, 1]; assert torch.spyre.is_available()"
    )
    result = run_new(code)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""


def test_explicit_import_works_without_autoload():
    code = "import torch, torch_spyre; torch.ones(3, device='spyre')"
    result = run_new(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.returncode == 0, result.stderr


def test_nonsense_in_aiu_world_size():
    code = """
import os, torch
def check(value):
    os.environ["AIU_WORLD_SIZE"] = value
    assert not torch.spyre.is_available()
    for use in (torch.spyre.device_count, lambda: torch.ones(2).to("spyre")):
        try:
            use()
        except RuntimeError as error:
            assert "AIU_WORLD_SIZE" in str(error) and repr(value) in str(error)
        else:
            raise AssertionError("no error")
    torch.manual_seed(0)
    assert torch.ones(2).sum().item() == 2
"""
    check_each(code, ["nonsense", "0", "-1", "1e3", "65", "3x", " "])


def test_downcast_warning_variable():
    code = """
import os, torch, warnings
def check(value):
    os.environ["TORCH_SPYRE_DOWNCAST_WARN"] = value
    with warnings.catch_warnings(record=True) as caught:
        for _ in range(2):
            try:
                torch.arange(3).to("spyre")
            except RuntimeError as error:
                assert "TORCH_SPYRE_DOWNCAST_WARN" in str(error), error
                assert value == "maybe"
            else:
                assert value != "maybe"
    texts = [str(w.message) for w in caught]
    count = sum("does not support int64" in text for text in texts)
    assert count == (value == "1"), texts
    assert torch.ones(2).to("spyre").cpu().tolist() == [1, 1]
"""
    check_each(code, ["1", "off", "maybe"], run=run_python)


def test_several_cards():
    code = """
import torch
assert torch.spyre.device_count() == torch.accelerator.device_count() == 3
x = torch.randn(5, 70).to("spyre:2")
assert x.device.index == 2
y = x.to("spyre:1")
assert torch.equal(y.cpu(), x.cpu()) and y.device.index == 1
with torch.spyre.device(2):
    assert torch.ones(2, device="spyre").device.index == 2
assert torch.ones(2, device="spyre").device.index == 0
torch.spyre.set_device("spyre:1")
assert torch.spyre.current_device() == 1 == x.to("spyre").device.index + 0
try:
    x + y
except RuntimeError as error:
    assert "same device" in str(error), error
else:
    raise AssertionError("no error")
"""
    result = run_python(code.replace(" + 0", ""), AIU_WORLD_SIZE="3")
    assert result.returncode == 0, result.stderr


# --- devices -------------------------------------------------------------------


def test_device_functions():
    assert torch.spyre.is_available() and torch.spyre.device_count() == 1
    assert torch.accelerator.current_accelerator() == torch.device("spyre")
    assert torch.spyre.current_device() == torch.accelerator.current_device_index() == 0
    torch.spyre.set_device(0)
    torch.spyre.synchronize()
    torch.accelerator.synchronize()
    assert "Spyre" in torch.spyre.get_device_name()
    assert torch._C._get_privateuse1_backend_name() == "spyre"
    with torch.device("spyre"):
        assert torch.empty(2).is_spyre and torch.ones(2).is_spyre


def test_streams_and_events():
    stream = torch.spyre.Stream()
    assert isinstance(stream, torch.Stream)
    assert stream.device() == torch.device("spyre", 0) and stream.query()
    default = torch.spyre.default_stream()
    assert torch.spyre.current_stream() == default
    with torch.spyre.stream(stream):
        assert torch.spyre.current_stream() == stream
        start, end = torch.spyre.Event(), torch.Event("spyre", enable_timing=True)
        start.record()
        end.record()
        end.synchronize()
    assert torch.spyre.current_stream() == default
    assert start.elapsed_time(end) >= 0
    stream.wait_event(end)
    torch.ones(2, device="spyre").record_stream(stream)


@pytest.mark.parametrize("index", [1, 5, 100])
def test_wrong_index(index):
    for use in (
        lambda: torch.ones(2).to(f"spyre:{index}"),
        lambda: torch.empty(2, device=f"spyre:{index}"),
        lambda: torch.spyre.set_device(index),
        lambda: torch.spyre.memory_stats(index),
        lambda: torch.spyre.device(index),
    ):
        with pytest.raises(IndexError, match=f"{index} is out of range"):
            use()
    with pytest.raises(ValueError, match="found cpu"):
        torch.spyre.set_device("cpu")
    assert torch.ones(2, device="spyre").cpu().tolist() == [1, 1]


# --- dtypes and values -------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.complex64, torch.complex128, torch.float8_e5m2],
    ids=str,
)
def test_unsupported_dtypes(dtype):
    message = str(dtype).replace(".", r"\.") + "; supported are torch.float16"
    with pytest.raises(TypeError, match=message):
        torch.zeros(3).to(dtype).to("spyre")
    with pytest.raises(TypeError, match=message):
        torch.empty(3, dtype=dtype, device="spyre")
    with pytest.raises(TypeError, match=message):
        torch.zeros(3, device="spyre").to(dtype)


def test_int64_beyond_32_bits():
    """The nearest that fits; test_integer_range.py has warnings and errors."""
    x = torch.zeros(4, 5, dtype=torch.int64)
    x[2, 3], x[3, 1] = -(2**31) - 1, 2**40
    expected = x.clamp(-(2**31), 2**31 - 1)
    assert_same(x.to("spyre").cpu(), expected)
    assert_same(x.t().to("spyre").cpu(), expected.t())
    device = torch.zeros(4, 5, dtype=torch.int64, device="spyre")
    device[3].copy_(x[3])
    assert_same(device[3].cpu(), expected[3])
    device.fill_(2**32)
    assert device.cpu().eq(2**31 - 1).all()
    edges = torch.tensor([-(2**31), 2**31 - 1])
    assert_same(edges.to("spyre").cpu(), edges)


def test_other_bad_requests():
    with pytest.raises(RuntimeError, match="pinned"):
        torch.empty(3, device="spyre", pin_memory=True)
    with pytest.raises(RuntimeError, match="negative"):
        torch.empty(3, -1, device="spyre")
    # Libraries that then try a smaller batch look for these words, with the stop.
    with pytest.raises(torch.OutOfMemoryError, match=r"spyre:0: .* out of memory\."):
        torch.empty(2**40, device="spyre")
    with pytest.raises((RuntimeError, TypeError)):
        torch.empty(2**62, 4, device="spyre")
    x = torch.ones(3, device="spyre")
    with pytest.raises(TypeError):
        x.numpy()
    assert x.cpu().tolist() == [1, 1, 1]


def test_memory_of_queued_work_is_waited_for():
    code = """
import torch
def big():
    return torch.empty((70 << 30) // 128, 64, dtype=torch.half, device="spyre")
def slow(x):
    for _ in range(60):
        x = x @ x
    return x
x = torch.full((512, 512), 2.0**-9).half().to("spyre")
y = big()
slow(x), y[:2] + 1  # programs
torch.spyre.synchronize()
result = slow(x)
y[:2] + 1
assert not torch.spyre.current_stream().query()
del y
y = big()  # more than half of the memory
assert result[0, 0].item() == 2.0**-9
"""
    # Freed memory that is poisoned exists.
    done = run_python(code, without=["SPYRE_POISON_FREED"])
    assert done.returncode == 0, done.stderr


# --- fallback ------------------------------------------------------------------------


def test_fallback_warns_and_counts():
    x = torch.tensor([[3.0, 1.0, 2.0]]).to("spyre")
    assert torch_spyre.fallback_report() == {}
    with pytest.warns(
        UserWarning, match=r"aten::special_erfcx.* runs on the CPU"
    ) as warnings:
        values = torch.special.erfcx(x)
        torch.special.erfcx(x)
    assert len([w for w in warnings if "no spyre kernel" in str(w.message)]) == 2
    assert values.is_spyre
    assert torch.equal(values.cpu(), torch.special.erfcx(x.cpu()))
    (count,) = torch_spyre.fallback_report().values()
    assert count == 2
    torch_spyre.reset_fallback_report()
    assert torch_spyre.fallback_report() == {}


@ignore_fallbacks
def test_fallback_results():
    x = torch.arange(140.0).view(2, 70)
    device = x.to("spyre")
    assert_same((device.cumsum(1)).cpu(), x.cumsum(1))
    out = torch.empty(0, device="spyre")
    torch.sort(
        device, descending=True, out=(out, torch.empty(0, device="spyre").long())
    )
    assert out.cpu()[0, 0] == 69
    assert_same(
        device.index_select(1, torch.tensor([3, 1]).to("spyre")).cpu(), x[:, [3, 1]]
    )
    assert_same(device[:, torch.tensor([3, 1])].cpu(), x[:, [3, 1]])
    device[:, 1::2].clamp_(max=100)
    x[:, 1::2].clamp_(max=100)
    assert_same(device.cpu(), x)
    device[torch.tensor([True, False])] = 5
    x[0] = 5
    assert_same(device.cpu(), x)
    torch._foreach_mul_([device, device[0]], 2)
    x.mul_(2)[0].mul_(2)
    assert_same(device.cpu(), x)


@ignore_fallbacks
def test_mixed_devices():
    x = torch.ones(3, 70, device="spyre")
    for use in (
        lambda: x + torch.ones(70),
        lambda: torch.ones(70) + x,
        lambda: x @ torch.ones(70, 2),
        lambda: torch.where(torch.ones(70).bool(), x, x),
        lambda: x.add_(torch.ones(70)),
        lambda: torch.ones(3, 70).add_(x),
        lambda: torch.cat([x, torch.ones(3, 70)]),
        lambda: x.index_select(0, torch.tensor([0])),
        lambda: torch.nn.functional.embedding(torch.tensor([0]), x),
    ):
        with pytest.raises(RuntimeError, match="same device"):
            use()
    assert (x * torch.tensor(2.0)).cpu()[0, 0] == 2


@ignore_fallbacks
def test_in_place_on_overlapping_memory_is_refused():
    x = torch.ones(1, 5, device="spyre").expand(3, 5)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.copy_(torch.ones(3, 5))


# --- modules -------------------------------------------------------------------------


def test_module_to():
    module = torch.nn.Sequential(
        torch.nn.Linear(70, 130), torch.nn.LayerNorm(130), torch.nn.Conv1d(3, 5, 2)
    ).half()
    parameters = list(module.parameters())
    values = [p.detach().clone() for p in parameters]
    assert module.to("spyre") is module
    assert all(a is b for a, b in zip(parameters, module.parameters(), strict=True))
    assert all(p.is_spyre and p.is_leaf and p.requires_grad for p in parameters)
    weight = module[0].weight
    assert weight.device_tensor_layout() == _C.SpyreTensorLayout(
        [130, 70], [70, 1], torch.float16, [1, 0]
    )
    assert weight.stride() == (70, 1)
    assert module[2].weight.device_tensor_layout() == _C.SpyreTensorLayout(
        [5, 3, 2], torch.float16
    )
    for parameter, value in zip(parameters, values, strict=True):
        assert_same(parameter.detach().cpu().float(), round_dl16(value))
    module.to("cpu")
    assert all(not p.is_spyre for p in module.parameters())
    assert module.spyre()[0].weight.device_tensor_layout().stride_map[1] == 1


def test_copies_of_modules_keep_layouts():
    linear = torch.nn.Linear(70, 130).to("spyre")
    other = copy.deepcopy(linear)
    assert other.weight.device_tensor_layout() == linear.weight.device_tensor_layout()
    assert_same(other.weight.detach().cpu(), linear.weight.detach().cpu())
    half = copy.deepcopy(linear).half().weight
    assert half.device_tensor_layout() == _C.SpyreTensorLayout(
        [130, 70], [70, 1], torch.float16, [1, 0]
    )
    assert_same(
        half.detach().to("cpu", torch.float32), round_dl16(linear.weight.detach())
    )
    small = torch.nn.Linear(1, 4).to("spyre").half().weight
    assert small.device_tensor_layout() == _C.SpyreTensorLayout(
        [4, 1], [1, 1], torch.float16, [1, 0]
    )
    with torch.inference_mode():
        assert torch.ones(3, 70, device="spyre")[1].clone().cpu().sum() == 70


def test_module_to_with_dtype():
    linear = torch.nn.Linear(8, 4)
    value = linear.weight.detach().clone()
    linear.to("spyre", torch.float16)
    assert linear.weight.dtype == torch.float16
    assert_same(linear.weight.detach().to("cpu", torch.float32), round_dl16(value))


@ignore_fallbacks
def test_training_step():
    torch.manual_seed(0)
    host = torch.nn.Linear(6, 3)
    device = torch.nn.Linear(6, 3)
    device.load_state_dict(host.state_dict())
    optimizers = [torch.optim.SGD(device.parameters(), lr=0.1)]
    device.to("spyre")
    optimizers.append(torch.optim.SGD(host.parameters(), lr=0.1))
    x = torch.randn(4, 6)
    device(x.to("spyre")).square().mean().backward()
    host(x).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()
    torch.testing.assert_close(device.weight.cpu(), host.weight)
    saved = device.state_dict()
    assert saved["weight"].is_spyre


# --- random numbers and memory ------------------------------------------------


@ignore_fallbacks
def test_random_numbers():
    torch.manual_seed(3)
    a = torch.randn(100, device="spyre").cpu()
    b = torch.randn(100, device="spyre").cpu()
    torch.manual_seed(3)
    assert torch.spyre.initial_seed() == 3
    assert torch.equal(torch.randn(100, device="spyre").cpu(), a)
    assert not torch.equal(a, b)
    state = torch.spyre.get_rng_state()
    assert state.shape == (16,) and state.dtype == torch.uint8
    c = torch.rand(5, device="spyre").cpu()
    torch.spyre.set_rng_state(state)
    assert torch.equal(torch.rand(5, device="spyre").cpu(), c)
    with torch.random.fork_rng(devices=[0], device_type="spyre"):
        torch.rand(5, device="spyre")
    generator = torch.Generator(device="spyre").manual_seed(7)
    d = torch.randint(0, 100, (9,), generator=generator, device="spyre").cpu()
    generator.manual_seed(7)
    e = torch.randint(0, 100, (9,), generator=generator, device="spyre").cpu()
    assert torch.equal(d, e)
    assert abs(torch.randn(10000, device="spyre").cpu().mean()) < 0.05
    with pytest.raises(
        RuntimeError, match="expected a generator of spyre:0, found one of cpu"
    ):
        torch.randn(3, device="spyre", generator=torch.Generator())
    with pytest.raises(RuntimeError, match="16 bytes"):
        torch.spyre.set_rng_state(torch.zeros(3, dtype=torch.uint8))


def test_memory_statistics():
    before = torch.spyre.memory_allocated()
    x = torch.empty(1000, 70, dtype=torch.float16, device="spyre")
    assert torch.spyre.memory_allocated() - before == 2 * 1000 * 128
    assert torch.accelerator.memory_allocated() == torch.spyre.memory_allocated()
    assert torch.spyre.max_memory_allocated() >= torch.spyre.memory_allocated()
    free, total = torch.spyre.mem_get_info()
    assert total == 128 * 2**30 and free == total - torch.spyre.memory_allocated()
    del x
    assert torch.spyre.memory_allocated() == before
    torch.spyre.empty_cache()


def test_pinned_memory():
    x = torch.randn(4).pin_memory()
    assert x.is_pinned() and not torch.randn(4).is_pinned()
    assert_same(x.to("spyre", non_blocking=True).cpu(), x)
    torch._C._accelerator_emptyCache()


# --- operators that torch does not implement on the CPU ---------------------------


@ignore_fallbacks
@pytest.mark.parametrize("name", ["conv", "transposed", "lstm", "gru"])
@pytest.mark.parametrize("has_programs", [True, False], ids=["programs", "none"])
def test_operators_without_a_cpu_kernel(monkeypatch, name, has_programs):
    if not has_programs:
        from torch_spyre.frontend import eager

        _C._forget_eager_programs()
        monkeypatch.setattr(eager, "compile_call", lambda *_: None)
    torch.manual_seed(0)
    module, shape = {
        "conv": (lambda: torch.nn.Conv2d(4, 6, 3, padding=1, groups=2), (2, 4, 8, 7)),
        "transposed": (lambda: torch.nn.ConvTranspose1d(3, 4, 3, 2), (2, 3, 8)),
        "lstm": (lambda: torch.nn.LSTM(4, 5, 2, bidirectional=True), (3, 2, 4)),
        "gru": (lambda: torch.nn.GRU(4, 5, 2, bias=False), (3, 2, 4)),
    }[name]
    host = module()
    device = copy.deepcopy(host).to("spyre")
    x = torch.randn(shape, requires_grad=True)
    y = x.detach().to("spyre").requires_grad_()
    expected, actual = host(x), device(y)
    if isinstance(expected, tuple):
        expected, actual = expected[0], actual[0]
    torch.testing.assert_close(actual.detach().cpu(), expected.detach())
    gradient = torch.randn_like(expected)
    expected.backward(gradient)
    actual.backward(gradient.to("spyre"))
    torch.testing.assert_close(y.grad.cpu(), x.grad)
    for a, b in zip(device.parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(a.grad.cpu(), b.grad)
    ran_on_cpu = {n for n in torch_spyre.fallback_report() if "convolution" in n}
    convolutions = {
        "aten::convolution_overrideable",
        "aten::convolution_backward_overrideable",
    }
    is_convolution = name in ("conv", "transposed")
    assert ran_on_cpu == (
        convolutions if is_convolution and not has_programs else set()
    )
    _C._forget_eager_programs()


@ignore_fallbacks
def test_autocast():
    linear = torch.nn.Linear(70, 3).to("spyre")
    with torch.autocast("spyre", dtype=torch.float16):
        y = linear(torch.ones(2, 70, device="spyre"))
        assert y.dtype == torch.float16 and y.softmax(1).dtype == torch.float32
    y.float().sum().backward()
    assert linear.weight.grad.dtype == torch.float32


def test_streams_and_events_of_other_devices_are_refused():
    x = torch.ones(3, device="spyre")
    with pytest.raises(RuntimeError, match="expected a stream of a spyre device"):
        x.record_stream(torch.Stream("cpu"))
    x.record_stream(torch.spyre.Stream())
    with pytest.raises(ValueError, match="expected a spyre device, found cpu"):
        torch.spyre.Event(device="cpu")
    assert torch.spyre.Event(device="spyre:0").device.type == "spyre"


def test_what_cuda_has_too():
    with torch.spyre.device_of(torch.ones(1)):
        pass
    with torch.spyre.device_of(torch.ones(1, device="spyre")):
        assert torch.spyre.current_device() == 0
    before = torch.spyre.current_stream()
    with torch.spyre.stream(None):
        assert torch.spyre.current_stream() == before
    assert torch.spyre.Stream.priority_range() == (0, -1)
    assert torch.spyre.is_bf16_supported()
    dtypes = torch.spyre.get_device_capability()["supported_dtypes"]
    assert torch.float16 in dtypes and torch.float64 not in dtypes


@pytest.mark.parametrize("overflows", [False, True])
def test_grad_scaler(overflows):
    """As on the CPU, whose float64 the device does not have."""

    def step(device):
        scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=1)
        weight = torch.ones(3, device=device, requires_grad=True)
        optimizer = torch.optim.SGD([weight], 0.1)
        loss = (weight * (float("inf") if overflows else 2.0)).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        gradient = weight.grad.cpu()
        scaler.step(optimizer)
        scaler.update()
        return gradient.tolist(), weight.tolist(), scaler.get_scale()

    assert step("spyre") == step("cpu")


def test_memory_that_nobody_has_written():
    """Deterministic programs find in it what they would on the CPU."""
    torch.use_deterministic_algorithms(True)
    try:
        for dtype in (torch.float32, torch.int32, torch.uint8, torch.bool):
            for make in (
                lambda device, dtype=dtype: torch.empty(3, dtype=dtype, device=device),
                lambda device, dtype=dtype: torch.empty_strided(
                    (5, 7), (1, 5), dtype=dtype, device=device
                ),
            ):
                expected = make("cpu")
                torch.testing.assert_close(
                    make("spyre").cpu(), expected, rtol=0, atol=0, equal_nan=True
                )
        # DL16 has one value for NaN and infinity; int64 has 32 bits.
        assert not torch.empty(3, dtype=torch.float16, device="spyre").isfinite().any()
        largest = torch.empty(3, dtype=torch.int64, device="spyre")
        assert largest.eq(2**31 - 1).all()
    finally:
        torch.use_deterministic_algorithms(False)
