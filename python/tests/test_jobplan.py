# SPDX-License-Identifier: Apache-2.0
"""SpyreCode from PyTorch: prepare_kernel, launch_jobplan, launch_kernel."""

import gc
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from interpreters import run_python
from numerics import assert_exact, compiled, to_host
from torch_spyre import _C

ROOT = Path(__file__).resolve().parents[2]
TRANSLATE = Path(os.environ.get("SPYRE_BUILD_DIR", ROOT / "build"))
TRANSLATE = TRANSLATE / "bin" / "spyre-translate"
PLANNED = ROOT / "test" / "Target" / "SuperDSC" / "Inputs" / "planned"
SCALAR = ROOT / "test" / "Target" / "SpyreCode" / "Inputs" / "scalar.mlir"

pytestmark = [
    pytest.mark.skipif(not TRANSLATE.exists(), reason="spyre-translate is not built"),
    pytest.mark.usefixtures("no_fallback"),
]


def translate(source, folder, *flags):
    command = [TRANSLATE, "--to-spyrecode", *flags, source, "-o", folder]
    subprocess.run(command, check=True, timeout=300)
    return str(folder)


def half(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).half().to("spyre")


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """exp(x) * y on 64 x 128: arguments x, y, out."""
    folder = tmp_path_factory.mktemp("code") / "bound"
    return translate(PLANNED / "two_ops_symbolic.mlir", folder)


@pytest.fixture(scope="module")
def symbolic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("code") / "symbolic"
    source = PLANNED / "two_ops_symbolic.mlir"
    return translate(source, folder, "--symbolic-args")


def expected(x, y):
    return compiled(lambda x, y: torch.exp(x) * y)(x, y)


@pytest.mark.parametrize("flags", [[], ["--symbolic-args"]])
def test_compiled_plan_gives_the_same_bits(flags, tmp_path, monkeypatch):
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    x, weight = half(37, 70), half(70, 33, seed=1)
    out = compiled(lambda x, w: (x @ w).softmax(-1))(x, weight)
    (part,) = [p for p in tmp_path.iterdir() if p.is_dir()]
    planned = max(part.glob("*spyre-verify-plan.mlir"))
    plan = _C.prepare_kernel(translate(planned, tmp_path / "code", *flags))
    steps = [plan.get_step_type(i) for i in range(plan.num_steps())]
    assert steps == (["HostCompute", "H2D", "Compute"] if flags else ["Compute"])
    result = torch.empty_like(out)
    _C.launch_jobplan(plan, [x, weight, result])
    assert_exact(to_host(result), to_host(out))


def test_plan_and_its_memory(code):
    torch.spyre.synchronize()
    before = torch.spyre.memory_allocated()
    plan = _C.prepare_kernel(code)
    size = plan.job_allocation_size()
    assert size % 128 == 0
    assert torch.spyre.memory_allocated() == before + size
    for step in (-1, plan.num_steps()):
        with pytest.raises(RuntimeError, match="Step index out of range"):
            plan.get_step_type(step)
    x, y = half(64, 128), half(64, 128, seed=1)
    out = torch.empty_like(x)
    _C.launch_jobplan(plan, (x, y, out))
    # The work that is queued keeps the plan.
    del plan
    assert_exact(to_host(out), to_host(expected(x, y)))
    torch.spyre.synchronize()
    del x, y, out
    gc.collect()
    assert torch.spyre.memory_allocated() <= before


@pytest.mark.parametrize("tiles", [2, 3, 8])
def test_larger_tensors_run_tile_by_tile(tiles, code, symbolic):
    x, y = half(64, 128 * tiles), half(64, 128 * tiles, seed=1)
    for folder in (code, symbolic):
        out = torch.empty_like(x)
        _C.launch_jobplan(_C.prepare_kernel(folder), [x, y, out])
        assert_exact(to_host(out), to_host(expected(x, y)))


def test_numbers_are_arguments(tmp_path):
    plan = _C.prepare_kernel(translate(SCALAR, tmp_path, "--symbolic-args"))
    x = half(64, 64)
    out = torch.zeros_like(x)
    _C.launch_jobplan(plan, [x, out, 32])
    assert_exact(out[:32].cpu(), x[:32].cpu())
    assert not out[32:].cpu().any()
    for value, text in ((17, "multiple of 16"), (80, "from 0 to 64")):
        with pytest.raises(_C.SpyreError, match=text):
            _C.launch_jobplan(plan, [x, out, value])
    with pytest.raises(_C.SpyreError, match="is a number, found a tensor"):
        _C.launch_jobplan(plan, [x, out, out])
    with pytest.raises(_C.SpyreError, match="is a tensor, found a number"):
        _C.launch_jobplan(plan, [x, 3, 32])
    for wrong in (1.5, True, "x", None):
        with pytest.raises(TypeError, match="must be a tensor or an integer"):
            _C.launch_jobplan(plan, [x, out, wrong])


def wrong_launches():
    """Arguments, error and text."""
    x, out = half(64, 128), torch.zeros(64, 128, dtype=torch.float16, device="spyre")
    wide, tall = half(64, 256), half(128, 128)
    yield [x, x], _C.SpyreError, "LAUNCH-C1"
    yield [x, x, out.cpu()], ValueError, "is on cpu, the job is on spyre:0"
    yield [x, x.float(), out], _C.SpyreError, "is float16, found float32"
    yield [x, x.reshape(-1).clone(), out], _C.SpyreError, "has 2 dimensions, found 1"
    yield [wide[:, :128], x, out], ValueError, "is a view of a part of its storage"
    yield [x.t(), x, out], ValueError, "is a view of a part of its storage"
    yield [half(64, 100), x, out], _C.SpyreError, "LAUNCH-C3"
    yield [half(128, 256), x, out], _C.SpyreError, "LAUNCH-C6"
    yield [wide, half(64, 384), out], _C.SpyreError, "LAUNCH-C4"
    yield [wide, wide, out], _C.SpyreError, "LAUNCH-C6"
    yield [tall, tall, tall], _C.SpyreError, "LAUNCH-C7"


@pytest.mark.parametrize("number", range(11))
def test_wrong_launches_are_refused_before_anything_is_queued(number, code):
    arguments, error, text = list(wrong_launches())[number]
    plan = _C.prepare_kernel(code)
    torch.spyre.synchronize()
    before = [to_host(a) for a in arguments]
    with pytest.raises(error, match=text):
        _C.launch_jobplan(plan, arguments)
    assert torch.spyre.current_stream().query()
    for a, b in zip(arguments, before, strict=True):
        assert_exact(to_host(a), b)


def test_tiled_launches_can_be_refused(code, monkeypatch):
    plan, wide = _C.prepare_kernel(code), half(64, 256)
    monkeypatch.setenv("SPYRE_ALLOW_TILED_LAUNCH", "0")
    with pytest.raises(_C.SpyreError, match="tiled launches are not allowed"):
        _C.launch_jobplan(plan, [wide, wide, torch.empty_like(wide)])
    monkeypatch.setenv("SPYRE_ALLOW_TILED_LAUNCH", "maybe")
    with pytest.raises(
        _C.SpyreError, match="expected 1, true, on, 0, false or off, found 'maybe'"
    ):
        _C.launch_jobplan(plan, [wide, wide, torch.empty_like(wide)])


def test_launches_are_in_the_order_of_the_current_stream(code):
    stream = torch.spyre.Stream()
    plan = _C.prepare_kernel(code, stream)
    x, y = half(64, 128), half(64, 128, seed=1)
    first, second = torch.empty_like(x), torch.empty_like(x)
    torch.spyre.synchronize()
    with torch.spyre.stream(stream):
        _C.launch_jobplan(plan, [x, y, first])
        _C.launch_jobplan(plan, [first, y, second])
    stream.synchronize()
    assert_exact(to_host(second), to_host(expected(expected(x, y), y)))


def test_stream_of_another_device_is_an_error(code):
    with pytest.raises(ValueError, match="expected a spyre stream"):
        _C.prepare_kernel(code, torch.Stream(device="cpu"))


def test_failures_surface_at_the_synchronisation(code):
    x, y = half(64, 128), half(64, 128, seed=1)
    broken = x.index_select(0, torch.tensor([99] * 64, device="spyre"))
    plan, out = _C.prepare_kernel(code), torch.empty_like(x)
    stream = torch.spyre.current_stream()
    _C.launch_jobplan(plan, [broken, y, out])
    with pytest.raises(RuntimeError, match="99"):
        stream.synchronize()
    # What the launch was to write is not there either.
    with pytest.raises(RuntimeError, match="99"):
        out.cpu()
    torch.spyre.synchronize()
    again = torch.empty_like(x)
    _C.launch_jobplan(plan, [x, y, again])
    assert_exact(to_host(again), to_host(expected(x, y)))


def test_launch_kernel_prepares_once_and_again_after_a_change(code, tmp_path):
    folder = tmp_path / "spyreCodeDir"
    shutil.copytree(code, folder)
    x, y = half(64, 128), half(64, 128, seed=1)
    for _ in range(2):
        out = torch.empty_like(x)
        _C.launch_kernel(str(tmp_path), [x, y, out])
        assert_exact(to_host(out), to_host(expected(x, y)))
    job = json.loads((folder / "spyrecode.json").read_text())
    job["JobExecPlan"] = []
    (folder / "spyrecode.json").write_text(json.dumps(job))
    os.utime(folder / "spyrecode.json", (1, 1))
    with pytest.raises(_C.SpyreError, match="the plan has no ComputeOnDevice"):
        _C.launch_kernel(str(tmp_path), [x, y, out])


def test_bad_folders(code, tmp_path):
    with pytest.raises(_C.SpyreError, match="SpyreCode directory does not exist"):
        _C.prepare_kernel(str(tmp_path / "nowhere"))
    shutil.copytree(code, tmp_path / "code")
    with pytest.raises(
        _C.SpyreError, match=r"is a directory, but this is none: '.*bin'"
    ):
        _C.prepare_kernel(str(tmp_path / "code" / "program.bin"))
    image = tmp_path / "code" / "program.bin"
    image.write_bytes(image.read_bytes()[:-1] + b"\1")
    with pytest.raises(
        _C.SpyreError, match=r"checksum does not match \[SPYRECODE-IMAGE-C2\]"
    ):
        _C.prepare_kernel(str(tmp_path / "code"))


def test_memory_that_is_not_there_is_an_error(code, tmp_path):
    shutil.copytree(code, tmp_path / "code")
    file = tmp_path / "code" / "spyrecode.json"
    job = json.loads(file.read_text())
    job["JobPreparationPlan"][0]["properties"]["size"] = str(16 << 30)
    file.write_text(json.dumps(job))
    # The host backs what is touched; freed memory is not poisoned then.
    program = f"""
import torch
from torch_spyre import _C
plans = []
try:
    while len(plans) < 9:
        plans.append(_C.prepare_kernel({str(tmp_path / "code")!r}))
except torch.OutOfMemoryError as error:
    print(len(plans), "device out of memory. " in str(error))
"""
    result = run_python(program, SPYRE_POISON_FREED="0")
    assert result.stdout.split() == ["7", "True"], result.stderr


def test_constants():
    formats = _C.DataFormats
    assert _C.encode_constant(1.0, formats.IEEE_FP32) == 0x3F800000
    assert _C.encode_constant(1.0, formats.SEN169_FP16) == 31 << 9
    assert _C.encode_constant(-0.0, formats.SEN169_FP16) == 0x8000
    with pytest.raises(ValueError, match="found IEEE_INT32"):
        _C.encode_constant(1.0, formats.IEEE_INT32)


# Name: function, dimensions of each input, and the dimensions along which a
# launch of the program on larger tensors runs (all others are refused).
TILED = {
    "pointwise": (lambda x, y: x * y + 1, ["mn", "mn"], "n"),
    "broadcast": (lambda x, y: x + y, ["mn", "n"], "n"),
    "rows": (lambda x: x + 1, ["1n"], "n"),
    "sum over rows": (lambda x: x.sum(0), ["mn"], "n"),
    "sum over columns": (lambda x: x.sum(1), ["mn"], ""),
    "matmul": (lambda x, y: x @ y, ["mk", "kn"], "n"),
    "maximum over rows": (lambda x: x - x.amax(0, keepdim=True), ["mn"], "n"),
    "maximum over columns": (lambda x: x - x.amax(1, keepdim=True), ["mn"], ""),
    "triangle": (torch.triu, ["mn"], ""),
    "running sum": (lambda x: x.cumsum(1), ["mn"], ""),
    "transposed": (lambda x: x.t() + 1, ["mn"], ""),
    "transposed square": (lambda x: x + x.t(), ["nn"], ""),
    "shifted": (lambda x: torch.roll(x, 64, 1), ["mn"], ""),
    "flattened": (lambda x: x.reshape(-1) + 1, ["mn"], ""),
    "batched": (lambda x, y: x + y, ["bmn", "mn"], ""),
}


@pytest.mark.parametrize("name", TILED)
def test_tiled_launches_are_refused_or_right(name, tmp_path, monkeypatch):
    function, dims, runs = TILED[name]
    base = {"b": 2, "m": 64, "n": 128, "k": 64, "1": 1}

    def inputs(**sizes):
        torch.manual_seed(0)
        sizes = {**base, **sizes}
        shapes = [[sizes[dim] for dim in own] for own in dims]
        return [torch.randint(-2, 3, shape).half().to("spyre") for shape in shapes]

    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    compiled(function)(*inputs())
    monkeypatch.delenv("SPYRE_DUMP_DIR")
    planned = max(tmp_path.glob("*/*spyre-verify-plan.mlir"))
    plan = _C.prepare_kernel(translate(planned, tmp_path / "code"))
    ran = ""
    for dim in sorted(set("".join(dims)) - {"1"}):
        larger = inputs(**{dim: 3 * base[dim]})
        expected = compiled(function)(*larger)
        layout = _C.get_spyre_tensor_layout(expected)
        size, stride = expected.size(), expected.stride()
        out = _C.empty_with_layout(size, stride, expected.dtype, layout)
        try:
            _C.launch_jobplan(plan, [*larger, out])
        except _C.SpyreError as error:
            assert "SPYRECODE-LAUNCH" in str(error)
            continue
        ran += dim
        assert_exact(to_host(out), to_host(expected))
    assert ran == runs


def test_profilers_show_the_kernels_of_each_tile(code, tmp_path):
    plan, x = _C.prepare_kernel(code), half(64, 384)
    out = torch.empty_like(x)
    torch.spyre.synchronize()
    with torch.profiler.profile() as profiler:
        _C.launch_jobplan(plan, [x, x, out])
        torch.spyre.synchronize()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel" and e["ph"] == "X"]
    kernels.sort(key=lambda event: event["ts"])
    names = [kernel["name"] for kernel in kernels]
    assert len(names) == 6
    assert ["exp" in name for name in names] == [True, False] * 3


@pytest.fixture(scope="module")
def sized(tmp_path_factory):
    """(x w).softmax of any number of rows to 512: its plan, with symbols."""
    folder = tmp_path_factory.mktemp("sized")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPYRE_DUMP_DIR", str(folder / "dump"))
        f = compiled(lambda x, w: (x @ w).softmax(-1), dynamic=None)
        x = half(37, 70)
        torch._dynamo.mark_dynamic(x, 0)
        f(x, half(70, 33, seed=1))
    (part,) = [p for p in (folder / "dump").iterdir() if p.is_dir()]
    return max(part.glob("*spyre-verify-plan.mlir"))


@pytest.mark.parametrize("flags", [[], ["--symbolic-args"]])
def test_sizes_are_bound_at_launch(flags, sized, tmp_path):
    """One plan in device memory; each launch gives the bits of the compiled graph."""
    plan = _C.prepare_kernel(translate(sized, tmp_path / "code", *flags))
    f = compiled(lambda x, w: (x @ w).softmax(-1), dynamic=None)
    weight = half(70, 33, seed=1)
    for size in (65, 2, 63, 512, 64, 37, 3):
        x = half(size, 70, seed=size)
        torch._dynamo.mark_dynamic(x, 0)
        result = torch.full((size, 33), torch.nan, device="spyre").half()
        _C.launch_jobplan(plan, [x, weight, result, size])
        assert_exact(to_host(result), to_host(f(x, weight)), f"{size}")


def test_sizes_that_do_not_fit(sized, tmp_path):
    plan = _C.prepare_kernel(translate(sized, tmp_path / "code"))
    weight = half(70, 33, seed=1)

    def launch(x, out, size):
        _C.launch_jobplan(plan, [half(x, 70), weight, half(out, 33), size])

    name = r"'s\d+'"
    for size in (1, 0, -2, 513):
        said = f"size {name} is {size}, but the program is for sizes from 2 to 512"
        with pytest.raises(_C.SpyreError, match=said + r".*SPYRECODE-LAUNCH-C2"):
            launch(2, 2, size)
    said = f"dimension 0 of argument '.*' is {{}}, but 64 where {name} is 64"
    for x, out, wrong in ((65, 64, 65), (64, 63, 63), (128, 128, 128)):
        with pytest.raises(_C.SpyreError, match=said.format(wrong)):
            launch(x, out, 64)
    with pytest.raises(_C.SpyreError, match=r"takes 4 arguments \(.*\), found 3"):
        _C.launch_jobplan(plan, [half(2, 70), weight, half(2, 33)])
    with pytest.raises(_C.SpyreError, match="is a number, found a tensor"):
        _C.launch_jobplan(plan, [half(2, 70), weight, half(2, 33), half(2, 2)])


def test_dimensions_of_one_size_may_still_be_tiled(tmp_path, monkeypatch):
    """What a size says is no tile; other dimensions are."""
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path / "dump"))
    f = compiled(lambda x: torch.exp(x) + 1, dynamic=None)
    x = half(37, 128)
    torch._dynamo.mark_dynamic(x, 0)
    f(x)
    (part,) = [p for p in (tmp_path / "dump").iterdir() if p.is_dir()]
    planned = max(part.glob("*spyre-verify-plan.mlir"))
    plan = _C.prepare_kernel(translate(planned, tmp_path / "code"))
    for size, columns in ((65, 128), (63, 384), (2, 256)):
        x = half(size, columns, seed=size)
        result = torch.full_like(x, torch.nan)
        _C.launch_jobplan(plan, [x, result, size])
        assert_exact(to_host(result), to_host(torch.exp(x) + 1))
