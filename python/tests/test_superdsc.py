# SPDX-License-Identifier: Apache-2.0
"""Compiled functions through SuperDSC give the bits that KTIR gives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torch_spyre
from numerics import assert_exact, compiled, to_host
from torch import nn
from torch.utils import _pytree as pytree
from torch_spyre import _C
from torch_spyre.compile_backend import compiled_parts

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

from models import MLP, GPT2Block, Llama, LlamaConfig  # noqa: E402

TRANSLATE = Path(os.environ.get("SPYRE_BUILD_DIR", ROOT / "build"))
TRANSLATE = TRANSLATE / "bin" / "spyre-translate"


def half(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).half()


def both_ways(make, monkeypatch):
    """Runs what ``make(compile)`` does, on KTIR and through SuperDSC.

    Returns the number of graphs. Every tensor that the two runs return must
    be the same bit for bit.
    """
    monkeypatch.delenv("SPYRE_EXECUTE", raising=False)
    options = {"superdsc_compatible": True}
    expected = make(lambda f: compiled(f, options=options))
    monkeypatch.setenv("SPYRE_EXECUTE", "superdsc")
    before = len(compiled_parts())
    actual = make(compiled)
    count = len(compiled_parts()) - before
    assert count > 0
    left, right = pytree.tree_leaves(expected), pytree.tree_leaves(actual)
    assert len(left) == len(right) > 0
    for a, b in zip(left, right, strict=True):
        assert_exact(b, a)
    assert torch_spyre.fallback_report() == {}
    return count


def forward(make_model, *inputs):
    def run(compiler):
        torch.manual_seed(1)
        model = make_model().eval().half().to("spyre")
        with torch.no_grad():
            return to_host([compiler(model)(*[i.to("spyre") for i in inputs])])

    return run


def llama(compiler):
    """Prefill and two decode steps, with the caches that they leave."""
    torch.manual_seed(1)
    config = LlamaConfig()
    model = Llama(config).eval().half().to("spyre")
    cache = model.make_cache(1, torch.zeros(1).half().to("spyre"))
    tokens = torch.randint(0, config.vocabulary, (1, 18))
    call, results = compiler(model), []
    with torch.no_grad():
        for start, stop in ((0, 16), (16, 17), (17, 18)):
            positions = torch.arange(start, stop).to("spyre")
            part = tokens[:, start:stop].to("spyre")
            results.append(call(part, positions, cache).cpu())
    return results, to_host([t for layer in cache for t in layer])


def training_step(make_model, x_shape, y_shape):
    def run(compiler):
        torch.manual_seed(2)
        model = make_model().train().half().to("spyre")
        x, y = half(*x_shape).to("spyre"), half(*y_shape, seed=1).to("spyre")
        loss = compiler(lambda x, y: F.mse_loss(model(x), y))(x, y)
        loss.backward()
        return to_host([loss.detach()] + [p.grad for p in model.parameters()])

    return run


MODELS = {
    "mlp": forward(lambda: MLP(130, 515, 70), half(3, 130)),
    "encoder": forward(
        lambda: nn.TransformerEncoderLayer(512, 8, batch_first=True),
        half(3, 128, 512),
    ),
    "gpt2": forward(GPT2Block, half(3, 37, 768)),
    "llama": llama,
    "training": training_step(lambda: MLP(70, 130, 33), (5, 70), (5, 33)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_give_the_same_bits(name, monkeypatch, capsys):
    count = both_ways(MODELS[name], monkeypatch)
    with capsys.disabled():
        print(f"\n{name}: {count} graphs through SuperDSC, 0 left out")


OPERATORS = {
    "exp": (torch.exp, (7, 13)),
    "add": (torch.add, (5, 70), (5, 70)),
    "broadcast": (torch.mul, (5, 37, 150), (150,)),
    "row and matrix": (torch.add, (65, 1), (65, 130)),
    "scalar": (lambda x: x * 0.1 + 3, (1,)),
    "clamp": (lambda x: x.clamp(-0.3, 0.7), (63,)),
    "where": (lambda x, y: torch.where(x > y, x, y), (4, 65), (4, 65)),
    "softplus": (F.softplus, (3, 67)),
    "sum last": (lambda x: x.sum(-1), (7, 100)),
    "sum first": (lambda x: x.sum(0), (7, 100)),
    "mean": (lambda x: x.mean((0, 2)), (3, 5, 130)),
    "max": (lambda x: x.amax(-1), (33, 65)),
    "argmax": (lambda x: x.argmax(-1), (5, 70)),
    "softmax": (lambda x: x.softmax(-1), (9, 130)),
    "layer norm": (lambda x: F.layer_norm(x, (130,)), (9, 130)),
    "matmul": (torch.matmul, (17, 70), (70, 33)),
    "batched": (torch.bmm, (3, 17, 70), (3, 70, 33)),
    "transposed": (lambda x: x.t().contiguous() + 1, (100, 70)),
    "slice": (lambda x: x[2:5, 64:128] * 2, (9, 200)),
    "odd slice": (lambda x: x[:, 3:40] * 2, (9, 50)),
    "column": (lambda x: x[:, 5].exp(), (33, 66)),
    "row": (lambda x: x[3] * 2, (10, 64)),
    "sum of nothing": (lambda x: x.sum(0), (0, 70)),
    "one matrix of several": (lambda x, y: x @ y[:, 1], (7, 70), (70, 4, 33)),
    "cat": (lambda x, y: torch.cat((x, y), -1), (5, 30), (5, 41)),
    "cat of a whole stick": (lambda x, y: torch.cat((x, y, y, x)), (64,), (7,)),
    "repeated stick": (lambda x, y: x.repeat(2) * y, (64,), (128,)),
    "rows of one number": (
        lambda x: x.sum(0, True)[torch.zeros(16, device="spyre").long()][11:] + 1,
        (5,),
    ),
    "reshape": (lambda x: x.reshape(6, 2, 32).transpose(0, 1) + 1, (6, 64)),
    "three batches": (torch.matmul, (2, 3, 2, 9, 64), (2, 3, 2, 64, 33)),
    "batches turned": (
        lambda x, y: torch.einsum("abcij,cbajk->abcik", x, y),
        (2, 3, 4, 5, 64),
        (4, 3, 2, 64, 63),
    ),
    "expanded factor": (
        lambda x, y: x.unsqueeze(1).expand(2, 3, 65, 64) @ y,
        (2, 65, 64),
        (2, 3, 64, 63),
    ),
    "column per batch": (lambda x, y: x @ y, (2, 3, 5, 64), (2, 3, 64, 1)),
    "element per batch": (lambda x, y: x @ y, (2, 3, 1, 64), (2, 3, 64, 1)),
    "column per batch of either": (lambda x, y: x @ y, (2, 1, 5, 64), (1, 3, 64, 1)),
    "element per batch of either": (lambda x, y: x @ y, (2, 1, 1, 64), (1, 3, 64, 1)),
    "row per batch of either": (lambda x, y: x @ y, (2, 1, 1, 64), (1, 3, 64, 7)),
    "products of elements": (lambda x, y: x @ y, (2, 3, 1, 1), (2, 3, 1, 1)),
    "windows": (lambda x: x.unfold(1, 3, 2) * 2, (5, 130)),
    "convolution of a Mamba block": (
        lambda x, w, b: F.silu(F.conv1d(x, w, b, padding=3, groups=130)[..., :-3]),
        (2, 130, 65),
        (130, 1, 4),
        (130,),
    ),
    "depthwise convolution": (
        lambda x, w: F.conv2d(x, w, padding=3, groups=96),
        (1, 96, 28, 28),
        (96, 1, 7, 7),
    ),
    "convolution of odd rows": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=3),
        (1, 3, 31, 29),
        (5, 3, 7, 7),
    ),
    "convolution in three dimensions": (
        lambda x, w: F.conv3d(x, w, padding=1),
        (2, 65, 3, 5, 6),
        (7, 65, 3, 3, 3),
    ),
    "depthwise convolution in three dimensions": (
        lambda x, w: F.conv3d(x, w, padding=1, groups=2),
        (2, 2, 4, 5, 6),
        (4, 1, 3, 2, 3),
    ),
    "average of windows": (lambda x: F.avg_pool2d(x, 3, 2, 1), (2, 65, 9, 11)),
    "overlapping rows": (lambda x: x.as_strided((5, 64), (3, 1)) + 1, (130,)),
    "odd reshape": (lambda x: x.reshape(13, 10) + 1, (10, 13)),
    "odd reshape of a transpose": (lambda x: x.t().reshape(13, 10) + 1, (13, 10)),
    "diagonal": (lambda x: torch.diagonal(x) + 1, (67, 67)),
    "cumsum": (lambda x: x.cumsum(0), (5, 70)),
    "cumsum last": (lambda x: x.cumsum(1), (5, 70)),
    "large integers": (lambda x: (x.int().long() < 2**40) & (x.int() > -(2**33)), (9,)),
    "integers out of range": (
        lambda x: [
            (x.float() * 1e20).long(),
            (x * 1e9).int().long() * 3 + 2**40,
            torch.where(x > 0, torch.iinfo(torch.int64).min, x.long()),
        ],
        (5, 70),
    ),
    "histogram": (lambda x: torch.histc(x, 7, -1, 1), (5, 70)),
    "float": (lambda x: x.float() * 2, (5, 70)),
    "float8 to bool": (lambda x: x.to(torch.float8_e4m3fn).bool(), (5, 70)),
    "scalars of other types": (lambda x: [x.float(), x.int(), x.bool()], ()),
    "triangle": (torch.tril, (70, 70)),
    "embedding": (
        lambda x: F.embedding(torch.tensor([[3, 1], [0, 2]], device="spyre"), x),
        (5, 70),
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_give_the_same_bits(name, monkeypatch):
    function, *shapes = OPERATORS[name]
    inputs = [half(*shape, seed=i) for i, shape in enumerate(shapes)]

    def run(compiler):
        return to_host([compiler(function)(*[i.to("spyre") for i in inputs])])

    both_ways(run, monkeypatch)


@pytest.mark.parametrize("cores", [{"M": 3, "K": 2}, {"K": 3}, {"K": 32}], ids=str)
def test_split_reductions_give_the_same_bits(cores, monkeypatch):
    x, y = half(9, 4096) * 0.1, half(4096, 65, seed=1) * 0.1
    if cores == {"K": 3}:
        x, y = x[:, :192], y[:192]

    def run(compiler):
        def function(x, y):
            with torch_spyre.spyre_hint(work_div=cores):
                return x @ y, x.sum(-1)

        device = [t.to("spyre") for t in (x, y)]
        torch_spyre.name_tensor_dims(device[0], ["M", "K"])
        return to_host(compiler(function)(*device))

    both_ways(run, monkeypatch)
    numbers = [kernel["num_cores"] for kernel in compiled_parts()[-1].report()]
    assert max(numbers) > cores.get("M", 1), numbers


def write_diagonal(x, y):
    x = x * 2
    x.as_strided((3,), (5,), 1).copy_(y)
    return x


def keys_of_groups(weights, queries):
    """Each head of keys is used by several of queries: two sums in one."""
    return torch.einsum("bhgqk,bhgqd->bhkd", weights, queries)


#: Accesses that SuperDSC has no form for, and copies lead to one that it has.
ACCESSES = {
    "flip": (lambda x: x.flip(0, 1) + 1, (5, 70)),
    "repeat": (lambda x: x.repeat(2).unflatten(0, (7, 2)) * 3, (7,)),
    "write": (write_diagonal, (3, 4), (3,)),
    "groups": (keys_of_groups, (2, 2, 4, 33, 65), (2, 2, 4, 33, 64)),
}


@pytest.mark.parametrize("name", ACCESSES)
def test_accesses_are_led_through_copies(name, monkeypatch):
    function, *shapes = ACCESSES[name]
    inputs = [half(*shape, seed=i) for i, shape in enumerate(shapes)]

    def run(compiler):
        return to_host([compiler(function)(*[i.to("spyre") for i in inputs])])

    both_ways(run, monkeypatch)
    exact = function(*[i.double() for i in inputs])
    actual = run(compiled)[0].double()
    scale = exact.abs().max()
    assert (actual - exact).abs().max() <= scale * 2.0**-9, name


TILED = {
    "attention": (F.scaled_dot_product_attention, *3 * [(1, 8, 2048, 64)]),
    "mlp": (lambda x, u, d: F.silu(x @ u) @ d, (8198, 64), (64, 4096), (4096, 65)),
    # No equal tiles of rows: columns of sticks are cut.
    "prime": (lambda x: torch.exp(x * 0.1).sin() * 2, (8191, 4096)),
}


@pytest.mark.parametrize("name", TILED)
def test_loops_over_tiles_give_the_same_bits(name, monkeypatch):
    function, *shapes = TILED[name]
    inputs = [half(*shape, seed=i) * 0.1 for i, shape in enumerate(shapes)]

    def run(compiler):
        return to_host([compiler(function)(*[i.to("spyre") for i in inputs])])

    both_ways(run, monkeypatch)
    ktir = compiled_parts()[-1].graph.print_ktir()
    assert "scf.for %" in ktir.split("func.func private")[0]


@pytest.mark.skipif(not TRANSLATE.exists(), reason="spyre-translate is not built")
def test_dumped_bundles_are_rewritten_with_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("SPYRE_EXECUTE", "superdsc")
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    MODELS["gpt2"](compiled)
    (bundles,) = [p / "superdsc" for p in tmp_path.iterdir() if p.is_dir()]
    assert (bundles / "bundle_1" / "bundle.mlir").exists(), "many arguments"

    def translate(*arguments):
        subprocess.run([TRANSLATE, *arguments], check=True, timeout=300)

    raised, again = tmp_path / "raised.mlir", tmp_path / "again"
    translate("--validate-superdsc", bundles)
    translate("--from-superdsc", bundles, "-o", raised)
    translate("--to-superdsc", raised, "-o", again)
    files = [p.relative_to(bundles) for p in bundles.rglob("*") if p.is_file()]
    assert len(files) > 20
    for file in files:
        assert (bundles / file).read_bytes() == (again / file).read_bytes(), file


@pytest.mark.skipif(not TRANSLATE.exists(), reason="spyre-translate is not built")
@pytest.mark.parametrize("flags", [[], ["--superdsc-flavor=spec"]])
def test_dumped_bundles_run_without_their_manifest(flags, tmp_path, monkeypatch):
    monkeypatch.setenv("SPYRE_EXECUTE", "superdsc")
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    (actual,) = forward(lambda: layer, half(2, 33, 128))(compiled)
    (dump,) = tmp_path.iterdir()
    bundles = tmp_path / "bundles"
    planned = max(dump.glob("*-spyre-verify-plan.mlir"))
    command = [TRANSLATE, "--to-superdsc", *flags, planned, "-o", bundles]
    subprocess.run(command, check=True, timeout=300)
    assert len(list(bundles.glob("bundle_*"))) > 1
    manifest = json.loads((bundles / "manifest.json").read_text())
    (bundles / "manifest.json").unlink()
    run = (dump / "run.sh").read_text().splitlines()[-1].split()
    files = [part for part in run if part.endswith(".npy")]
    out = tmp_path / "out"
    command = [TRANSLATE.with_name("spyre-run"), bundles, "--out-dir", out]
    for file, argument in zip(files, manifest["arguments"], strict=True):
        # Without a manifest, weights are the matrices that are multiplied.
        np.save(tmp_path / file, np.load(dump / file).transpose(argument["order"]))
        command += ["--arg", tmp_path / file]
    subprocess.run(command, check=True, timeout=300)
    result = np.load(out / f"arg{len(files) - 1}.npy")
    assert_exact(torch.from_numpy(result), actual)


@pytest.mark.parametrize("step", [lambda x: x + 1, lambda x: x * 3, lambda x: x + x])
def test_arithmetic_of_booleans(step):
    """Not to be taken for the logical operations of the same name."""
    x = torch.tensor([True, False, True])
    through = compiled(step, options={"through_superdsc": True})
    assert_exact(through(x.to("spyre")).cpu(), step(x))


@pytest.mark.parametrize("option", ["through_superdsc", "superdsc_compatible"])
def test_view_near_the_end_of_its_storage(option):
    """Whole storages may be copied, so their begin must not move."""
    base = torch.arange(640).remainder(7).half()
    function = compiled(lambda a: a @ a.t(), options={option: True})
    for offset in (0, 577):
        view = base[offset : offset + 63].view(7, 9)
        actual = function(base.to("spyre")[offset : offset + 63].view(7, 9))
        assert_exact(actual.cpu(), view @ view.t())


def test_unknown_way_to_execute(monkeypatch):
    monkeypatch.setenv("SPYRE_EXECUTE", "magic")
    with pytest.raises(Exception, match="SPYRE_EXECUTE: expected ktir or superdsc"):
        compiled(torch.exp)(half(3).to("spyre"))


def test_options_are_part_of_the_key():
    builder = _C.GraphBuilder()
    keys = {
        _C.get_cache_key(builder, options)
        for options in ({}, {"superdsc_compatible": True}, {"through_superdsc": True})
    }
    assert len(keys) == 3
