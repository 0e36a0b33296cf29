# SPDX-License-Identifier: Apache-2.0
"""Kernels from specifications made by hand: spec/drop-in.md, "Other submodules"."""

import dataclasses
import json
import os

import pytest
import sympy
import torch
from commands import REFERENCE_DATA
from inputs import values
from numerics import assert_contraction, assert_exact, device_value
from torch_spyre import _C
from torch_spyre._inductor import config
from torch_spyre._inductor.codegen.bundle import generate_bundle
from torch_spyre._inductor.codegen.superdsc import Description, Symbols
from torch_spyre._inductor.constants import SEGMENT_OFFSETS
from torch_spyre._inductor.errors import Unsupported
from torch_spyre._inductor.op_spec import (
    IndirectAccess,
    LoopSpec,
    OpSpec,
    TensorArg,
    UnimplementedOp,
)
from torch_spyre.execution.async_compile import SpyreAsyncCompile, get_output_dir
from torch_spyre.execution.kernel_runner import (
    SpyreSDSCKernelRunner,
    SpyreUnimplementedRunner,
)

H = torch.float16
FP16, FP32 = _C.DataFormats.SEN169_FP16, _C.DataFormats.IEEE_FP32
m, n, k = sympy.symbols("c0 c1 c2", integer=True)


def arg(number, sizes, coordinates, written=False, memory=None, **more):
    """A tensor in device memory, or elsewhere."""
    where = {"hbm": SEGMENT_OFFSETS[number]} if memory is None else memory
    dtype = more.pop("dtype", FP16)
    return TensorArg(not written, number, dtype, sizes, coordinates, where, **more)


def rows(number, height, width, at=(m, n), written=False, **more):
    """A matrix with sticks along its last dimension."""
    i, j = at
    per_stick = more.get("dtype", FP16).elems_per_stick()
    sizes = [-(-width // per_stick), height, per_stick]
    return arg(number, sizes, [j // per_stick, i, j % per_stick], written, **more)


def spec(op, space, *args, is_reduction=False, info=None, tiled=()):
    symbols = {s: (sympy.Integer(r), c) for s, (r, c) in space.items()}
    return OpSpec(op, is_reduction, symbols, list(args), info or {}, list(tiled))


ABS = spec("abs", {m: (4, 2), n: (64, 1)}, rows(0, 4, 64), rows(1, 4, 64, written=True))
ADD = spec(
    "add",
    {m: (4, 2), n: (128, 2)},
    rows(0, 4, 128),
    arg(1, [2, 64], [n // 64, n % 64]),
    rows(2, 4, 128, written=True),
)
CLIP = spec(
    "clip",
    {n: (128, 2)},
    arg(0, [2, 64], [n // 64, n % 64]),
    arg(1, [2, 64], [n // 64, n % 64], True),
    info={"constants": {"clipMin": 0.0, "clipMax": 6.0}},
)
MATMUL = spec(
    "batchmatmul",
    {m: (128, 4), n: (192, 3), k: (256, 2)},
    rows(0, 128, 256, (m, k)),
    rows(1, 256, 192, (k, n)),
    rows(2, 128, 192, (m, n), True, memory={"lx": 4096}),
    is_reduction=True,
)
MAX = spec(
    "max",
    {m: (128, 32), n: (100, 1)},
    rows(0, 128, 100),
    arg(1, [128, 64], [m, sympy.Integer(0)], True),
    is_reduction=True,
)
RESTICKIFY = spec(
    "ReStickifyOpHBM",
    {m: (100, 1), n: (70, 1)},
    rows(0, 100, 70),
    arg(1, [2, 70, 64], [m // 64, n, m % 64], True),
)
SUM_ROWS = spec(
    "sum",
    {m: (256, 4), n: (128, 1)},
    arg(0, [4, 128, 64], [m // 64, n, m % 64]),
    arg(1, [4, 64], [m // 64, m % 64], True),
    is_reduction=True,
)
SUM = spec(
    "sum",
    {m: (128, 32), n: (256, 1)},
    rows(0, 128, 256),
    arg(1, [128, 64], [m, 0], True),
    is_reduction=True,
)
SPACE = {m: (64, 4), n: (128, 2)}
CHAIN = [
    spec(
        "exp", SPACE, rows(0, 64, 128), rows(3, 64, 128, (m, n), True, memory={"lx": 0})
    ),
    spec(
        "mul",
        SPACE,
        rows(3, 64, 128, memory={"lx": 0}),
        rows(1, 64, 128),
        rows(2, 64, 128, written=True),
    ),
]
#: Folder of the reference -> what it was made of, and with which symbols.
REFERENCE = {
    "abs_4x64": ([ABS], False),
    "add_broadcast": ([ADD], False),
    "clip_constants": ([CLIP], False),
    "matmul_ksplit_lx": ([MATMUL], False),
    "max_stick_padded": ([MAX], False),
    "restickify_100x70": ([RESTICKIFY], False),
    "sum_nonstick": ([SUM_ROWS], False),
    "sum_stick": ([SUM], False),
    "two_ops_symbolic": (CHAIN, True),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_files_are_the_references(name, tmp_path):
    """Byte for byte, but for the order of keys."""
    folder = REFERENCE_DATA / "superdsc" / name
    if not folder.exists():
        pytest.skip("no reference data")
    specs, symbolic = REFERENCE[name]
    generate_bundle(name, tmp_path, specs, unroll_loops=True, symbolic_args=symbolic)
    expected = {f.name: f.read_text() for f in folder.iterdir()}
    del expected["case.json"]
    assert sorted(f.name for f in tmp_path.iterdir()) == sorted(expected)
    for file, text in expected.items():
        made = (tmp_path / file).read_text()
        if file.endswith(".json"):
            assert json.loads(made) == json.loads(text), file
        else:
            assert made.split() == text.split(), file


def run(name, specs, *tensors):
    kernel = SpyreAsyncCompile().sdsc(name, specs)
    kernel.run(*tensors)
    return tensors[-1].cpu()


@pytest.fixture(params=[False, True], ids=["baked", "symbolic"])
def both_forms(request):
    with config.patch(bundle_symbolic_args=request.param):
        yield


@pytest.mark.usefixtures("both_forms")
def test_elementwise():
    x = values((4, 64), H).to("spyre")
    assert_exact(run("abs", [ABS], x, torch.empty_like(x)), x.abs().cpu())
    y, z = values((4, 128), H).to("spyre"), values((128,), H, seed=1).to("spyre")
    assert_exact(run("add", [ADD], y, z, torch.empty_like(y)), (y + z).cpu())
    w = (values((128,), H) * 9).to("spyre")
    clipped = run("clip", [CLIP], w, torch.empty_like(w))
    assert_exact(clipped, w.clamp(0, 6).cpu())
    assert clipped.max() == 6 and clipped.min() == 0


@pytest.mark.usefixtures("both_forms")
def test_reductions():
    x = values((128, 100), H).to("spyre")
    out = torch.empty(
        (128,), dtype=H, device="spyre",
        device_layout=_C.SpyreTensorLayout([128], [1], H, [0, -1]),
    )  # fmt: skip
    assert_exact(run("max", [MAX], x, out), x.amax(-1).cpu())
    y = values((128, 256), H).to("spyre")
    exact = device_value(y.cpu())
    assert_contraction(
        run("sum", [SUM], y, out), exact.sum(-1), 256, exact.abs().sum(-1)
    )
    result = run("rows", [SUM_ROWS], y, torch.empty(256, dtype=H, device="spyre"))
    assert_contraction(result, exact.sum(0), 128, exact.abs().sum(0))


@pytest.mark.usefixtures("both_forms")
@pytest.mark.parametrize(("i", "j", "l"), [(128, 192, 256), (65, 70, 130), (1, 1, 3)])
def test_products(i, j, l):  # noqa: E741
    x = values((i, l), H).to("spyre")
    y = values((l, j), H, seed=1).to("spyre")
    product = spec(
        "batchmatmul",
        {m: (i, 1), n: (j, 1), k: (l, 1)},
        rows(0, i, l, (m, k)),
        rows(1, l, j, (k, n)),
        rows(2, i, j, (m, n), True),
        is_reduction=True,
    )
    out = torch.empty(i, j, dtype=H, device="spyre")
    a, b = device_value(x.cpu()), device_value(y.cpu())
    result = run("product", [product], x, y, out)
    assert_contraction(result, a @ b, l, a.abs() @ b.abs())


@pytest.mark.usefixtures("both_forms")
def test_values_pass_through_lx():
    x, y = values((64, 128), H).to("spyre"), values((64, 128), H, seed=1).to("spyre")
    result = run("chain", CHAIN, x, y, torch.empty_like(x))
    assert_exact(result, (x.exp() * y).cpu())


@pytest.mark.usefixtures("both_forms")
def test_another_stick():
    x = values((100, 70), H).to("spyre")
    layout = _C.SpyreTensorLayout([100, 70], [70, 1], H, [1, 0])
    out = torch.empty((100, 70), dtype=H, device="spyre", device_layout=layout)
    assert_exact(run("restickify", [RESTICKIFY], x, out), x.cpu())


@pytest.mark.usefixtures("both_forms")
def test_conversions():
    x = values((70,), torch.float32).to("spyre")
    own = spec(
        "fp32todl16",
        {n: (70, 1)},
        arg(0, [3, 32], [n // 32, n % 32], dtype=FP32),
        arg(1, [2, 64], [n // 64, n % 64], True),
    )
    narrow = torch.empty(70, dtype=H, device="spyre")
    assert_exact(run("narrow", [own], x, narrow), x.half().cpu())


def chain_through_the_pool():
    """``CHAIN`` with its intermediate in device memory, behind which arguments lie."""
    chain = [
        spec("exp", SPACE, rows(0, 64, 128), rows(3, 64, 128, (m, n), True)),
        spec(
            "mul",
            SPACE,
            rows(3, 64, 128),
            rows(1, 64, 128),
            rows(2, 64, 128, written=True),
        ),
    ]
    for op in chain:
        for own in op.args:
            (start,) = own.allocation.values()
            if own.arg_index == 3:
                own.allocation, own.arg_index = {"pool": 1024}, -1
            else:
                own.allocation = {"hbm": start + SEGMENT_OFFSETS[1]}
    return chain


@pytest.mark.usefixtures("both_forms")
def test_a_pool():
    """Intermediates in device memory, which a run allocates unless it is given."""
    chain = chain_through_the_pool()
    x, y = values((64, 128), H).to("spyre"), values((64, 128), H, seed=1).to("spyre")
    pool = torch.empty(1 << 16, dtype=torch.uint8, device="spyre")
    for front in ((), (pool,)):
        result = run("pool", chain, *front, x, y, torch.empty_like(x))
        assert_exact(result, (x.exp() * y).cpu())


def test_addresses_beside_a_pool(tmp_path):
    """Where a parameter is the pool, numbers have arguments from segment 1 on."""
    chain = chain_through_the_pool()
    generate_bundle("mixed", tmp_path, chain, symbolic_args=True)
    bundle = tmp_path / "bundle.mlir"
    parameter = "%arg_1_base_addr: !sdscbundle.input_arg<index>, "
    extracted = (
        "sdscbundle.input_arg_extract value from %arg_1_base_addr "
        ": !sdscbundle.input_arg<index> -> index"
    )
    text = bundle.read_text()
    assert text.count(parameter) == text.count(extracted) == 1
    constant = f"arith.constant {SEGMENT_OFFSETS[2]} : index"
    text = text.replace(parameter, "").replace(extracted, constant)
    bundle.write_text(text)
    x, y = values((64, 128), H).to("spyre"), values((64, 128), H, seed=1).to("spyre")
    out = torch.empty_like(x)
    _C.load_bundles(str(tmp_path)).run([x, y, out], [])
    assert_exact(out.cpu(), (x.exp() * y).cpu())


def tiled(rows_per_tile, columns_per_tile):
    """The exponential of [256, 256] in tiles, each on two cores."""
    space = {m: (rows_per_tile, 2), n: (columns_per_tile, 1)}
    args = rows(0, 256, 256), rows(1, 256, 256, written=True)
    return spec("exp", space, *args, tiled=[m, n])


@pytest.mark.usefixtures("both_forms")
@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("names_symbols", [False, True])
def test_loops(unroll, names_symbols, tmp_path):
    x = values((256, 256), H).to("spyre")
    op = tiled(64, 128)
    inner = LoopSpec(2, [op], [n] if names_symbols else [])
    outer = LoopSpec(4, [inner], [m] if names_symbols else [])
    if names_symbols:
        op.tiled_symbols = []
    with config.patch(unroll_loops=unroll):
        assert_exact(run("tiles", [outer], x, torch.empty_like(x)), x.exp().cpu())
        generate_bundle("tiles", tmp_path, [outer])
    text = (tmp_path / "bundle.mlir").read_text()
    assert text.count("scf.for") == (0 if unroll else 2)
    assert text.count("sdsc_execute") == (8 if unroll else 1)


def test_a_loop_may_leave_a_tensor_where_it_is():
    """The same row is added to each tile."""
    x, row = values((64, 64), H).to("spyre"), values((16, 64), H, seed=1).to("spyre")
    op = spec(
        "add",
        {m: (16, 1), n: (64, 1)},
        rows(0, 64, 64),
        rows(1, 16, 64, per_tile_fixed=True),
        rows(2, 64, 64, written=True),
        tiled=[m],
    )
    for unroll in (False, True):
        with config.patch(unroll_loops=unroll):
            result = run("fixed", [LoopSpec(4, [op])], x, row, torch.empty_like(x))
        assert_exact(result, (x + row.repeat(4, 1)).cpu())


def test_options_are_those_of_the_configuration(tmp_path):
    loop = LoopSpec(4, [tiled(64, 256)])
    texts = {}
    for unroll in (False, True):
        for symbolic in (False, True):
            folder = tmp_path / f"{unroll}{symbolic}"
            with config.patch(unroll_loops=unroll, bundle_symbolic_args=symbolic):
                generate_bundle("own", folder, [loop])
            given = tmp_path / f"given{unroll}{symbolic}"
            generate_bundle("own", given, [loop], unroll, symbolic)
            texts[unroll, symbolic] = (folder / "bundle.mlir").read_text()
            assert texts[unroll, symbolic] == (given / "bundle.mlir").read_text()
    assert len(set(texts.values())) == 4
    assert ["%arg_0_base_addr" in text for text in texts.values()] == [False, True] * 2


def test_operations_that_the_card_does_not_have(tmp_path):
    specs = [ABS, LoopSpec(2, [UnimplementedOp("welford")])]
    kernel = SpyreAsyncCompile().sdsc("own", specs)
    assert isinstance(kernel, SpyreUnimplementedRunner)
    with pytest.raises(RuntimeError, match="kernel own needs operation welford"):
        kernel.run()
    with pytest.raises(Unsupported, match="welford in own"):
        generate_bundle("own", tmp_path, specs)


def change(spec, **changes):
    return dataclasses.replace(spec, **changes)


WRONG = {
    "not evenly divisible": change(ABS, iteration_space={m: (4, 3), n: (64, 1)}),
    "exceeds SENCORES": change(ABS, iteration_space={m: (64, 64), n: (64, 1)}),
    "without a tensor that it writes": change(ABS, args=ABS.args[:1]),
    "expected one of the loops c0, c1": change(
        ABS, args=[arg(0, [1, 4, 64], [n // 64, m + n, n % 64]), ABS.args[1]]
    ),
    "expected c0 or c0 // 64, and a constant": change(
        ABS, args=[arg(0, [1, 8, 64], [n // 64, 2 * m, n % 64]), ABS.args[1]]
    ),
    # Three elements apart from 64 on only, where no sample of iterations shows it.
    "is c0 \\+ .*: expected c0 or c0 // 64": change(
        ABS,
        args=[
            arg(0, [1, 8, 64], [n // 64, m + 3 * (m // 77), n % 64]),
            ABS.args[1],
        ],
        iteration_space={m: (256, 2), n: (64, 1)},
    ),
    "has 2 device coordinates: expected 3": change(
        ABS, args=[arg(0, [1, 4, 64], [m, n % 64]), ABS.args[1]]
    ),
    "has 32 elements per stick: expected 64": change(
        ABS, args=[arg(0, [2, 4, 32], [n // 32, m, n % 32]), ABS.args[1]]
    ),
    "indices that a tensor holds": change(
        ABS, args=[arg(0, [1, 4, 64], [0, IndirectAccess("i"), n]), ABS.args[1]]
    ),
    "memory 'sram': expected hbm, lx or pool": change(
        ABS, args=[rows(0, 4, 64, memory={"sram": 0}), ABS.args[1]]
    ),
    "the cores c7, which is no number": change(
        ABS, iteration_space={m: (4, sympy.Symbol("c7")), n: (64, 1)}
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_a_bundle_cannot_say(text, tmp_path):
    with pytest.raises(Unsupported, match=text):
        generate_bundle("own", tmp_path, [WRONG[text]])


def test_wrong_specifications_and_tensors(tmp_path):
    with pytest.raises(TypeError, match="expected OpSpec or LoopSpec, found 7"):
        generate_bundle("own", tmp_path, [7])
    with pytest.raises(Unsupported, match="a loop of s iterations"):
        generate_bundle("own", tmp_path, [LoopSpec(sympy.Symbol("s"), [ABS])])
    with pytest.raises(_C.SpyreError, match="SDSC-OP-C1"):
        SpyreAsyncCompile().sdsc("own", [change(ABS, op="absolute")])
    kernel = SpyreAsyncCompile().sdsc("own", [ABS])
    x = torch.ones(4, 64, dtype=H, device="spyre")
    with pytest.raises(ValueError, match="takes 2 arguments"):
        kernel.run(x)
    with pytest.raises(ValueError, match="compiled for another layout than"):
        kernel.run(x, torch.ones(5, 64, dtype=H, device="spyre"))
    with pytest.raises(ValueError, match="compiled for another layout than"):
        kernel.run(x, torch.ones(4, 32, device="spyre"))
    # A host shape that is the same on the device.
    flat = torch.empty(4, 1, 64, dtype=H, device="spyre")
    assert run("own", [ABS], -x, flat).eq(1).all()


def test_descriptions_whose_lists_do_not_fit():
    own = Description(ABS, 0).describe((), Symbols(), False)
    step = {"file": "sdsc_0.json", "symbols": [], "operands": []}
    bundle = {"has_pool_parameter": False, "arguments": [], "segments": None}

    def write(step=step, **changes):
        files = {"sdsc_0.json": {**own, **changes}}
        return _C.write_bundle({**bundle, "steps": [step]}, files)

    assert sorted(write()) == ["bundle.mlir", "sdsc_0.json"]
    tensor = own["tensors"][0]
    wrong = {
        "inputs: expected numbers below 2, found 2": {"inputs": [2]},
        "core_order: expected each of 2 dims once": {"core_order": [1, 1]},
        "mask_constant: expected -1 or a number below 0": {"mask_constant": 0},
        "label: expected numbers below 0, found 0": {"labels": []},
        "expected one for each of 2 cores, found 1": {
            "tensors": [{**tensor, "addresses": [0]}]
        },
        "order, scale and gap": {"tensors": [{**tensor, "gap": []}]},
        "scale: expected 1, -1 or -2, found 0": {"tensors": [{**tensor, "scale": [0]}]},
        "not evenly divisible": {"dims": [{**own["dims"][0], "slices": 3}]},
    }
    for text, changes in wrong.items():
        with pytest.raises(ValueError, match=text):
            write(**changes)
    address = {"base": 2, "argument": 0, "offset": 0, "strides": [64]}
    for text, changed in (
        ("symbols and operands", {"symbols": [-1]}),
        ("strides: expected 0, one per loop", {"operands": [address]}),
        ("base: expected 0, 1 or 2, found 3", {"operands": [{**address, "base": 3}]}),
    ):
        with pytest.raises(ValueError, match=text):
            write({**step, **changed})
    with pytest.raises(KeyError, match="order"):
        write(labels=[{"name": "INPUT", "sticks": []}])


def test_kernels_are_in_inductors_cache():
    SpyreAsyncCompile().wait({})
    folder = get_output_dir("sdsc_fused_0")
    assert os.path.isdir(folder) and "inductor-spyre" in folder
    assert os.path.basename(folder).startswith("sdsc_fused_0_")
    assert folder != get_output_dir("sdsc_fused_0")
    generate_bundle("own", folder, [ABS])
    x = -torch.ones(4, 64, dtype=H, device="spyre")
    out = torch.empty_like(x)
    SpyreSDSCKernelRunner("own", folder).run(x, out)
    assert out.cpu().eq(1).all() and not os.path.exists(folder + "/spyreCodeDir")


def test_kernels_as_spyrecode(monkeypatch, tmp_path):
    monkeypatch.setenv("DUMP_SPYRE_CODE", "1")
    generate_bundle("own", tmp_path, [ABS])
    kernel = SpyreSDSCKernelRunner("own", tmp_path)
    monkeypatch.setenv("DUMP_SPYRE_CODE", "0")
    assert (tmp_path / "spyreCodeDir" / "spyrecode.json").exists()
    x = values((4, 64), H).to("spyre")
    for own in (kernel, SpyreSDSCKernelRunner("again", tmp_path)):
        out = torch.empty_like(x)
        own.run(x, out)
        assert_exact(out.cpu(), x.abs().cpu())


def test_the_name_of_a_kernel_is_logged(listen):
    from torch_spyre.logging_config import get_logger

    x = torch.ones(4, 64, dtype=H, device="spyre")
    kernel = SpyreAsyncCompile().sdsc("own", [ABS])
    with listen(get_logger("spyre.runtime"), "DEBUG") as records:
        kernel.run(x, torch.empty_like(x))
        torch.spyre.synchronize()
    assert any("with 2 arguments" in record.getMessage() for record in records)
