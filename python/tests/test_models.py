# SPDX-License-Identifier: Apache-2.0
"""Models: whole forward compiled, no fallback, as close as one can round."""

import copy
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torch_spyre
from numerics import (
    assert_exact,
    assert_like_oracle,
    compiled,
    device_value,
    oracle,
    to_host,
)
from torch import nn
from torch_spyre.compile_backend import compiled_parts

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

from models import MLP, GPT2Block, Llama, LlamaConfig  # noqa: E402

SPYRE_RUN = Path(os.environ.get("SPYRE_BUILD_DIR", ROOT / "build")) / "bin/spyre-run"


@pytest.fixture(autouse=True)
def _one_thread():
    """References of small models: threads cost more than they give."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def on_device_and_wide(model):
    """A model in fp16 on the device, and in fp64 with the values it stores."""
    half = copy.deepcopy(model).half()
    wide = copy.deepcopy(model).double()
    with torch.no_grad():
        for target, source in zip(
            [*wide.parameters(), *wide.buffers()],
            [*half.parameters(), *half.buffers()],
            strict=True,
        ):
            target.copy_(device_value(source))
    return half.to("spyre"), wide


def half_input(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).half()


def check_forward(model, *inputs):
    """Compiles a model's forward; compares it with fp64 and the oracle."""
    torch.manual_seed(0)
    device, wide = on_device_and_wide(model.eval())
    with torch.no_grad():
        actual = compiled(device)(*[i.to("spyre") for i in inputs]).cpu()
        stored = [device_value(i) for i in inputs]
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            reference = wide(*stored)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
        rounded = oracle(wide, *stored)
    assert torch_spyre.fallback_report() == {}
    assert actual.dtype == torch.float16
    assert_like_oracle(actual, reference, rounded, type(model).__name__)
    return actual


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_mlp(batch):
    torch.manual_seed(1)
    check_forward(MLP(130, 515, 70), half_input(batch, 130))


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_encoder_layer(batch):
    """In eval mode PyTorch calls one fused operator."""
    torch.manual_seed(1)
    model = nn.TransformerEncoderLayer(512, 8, batch_first=True)
    check_forward(model, half_input(batch, 128, 512))


@pytest.mark.parametrize("options", [{"norm_first": True}, {"activation": "gelu"}])
def test_encoder_layer_without_the_fused_path(options):
    torch.manual_seed(1)
    model = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, **options)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        check_forward(model, half_input(3, 33, 128))
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def check_encoder(**masks):
    """Compares rows that no padding hides, eager and compiled, with fp64."""
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(64, 4, 96, batch_first=True)
    device, wide = on_device_and_wide(nn.TransformerEncoder(layer, 2).eval())
    x = half_input(2, 7, 64)
    padding = masks.get("src_key_padding_mask", torch.zeros(2, 7, dtype=torch.bool))

    def run(model, x, dtype):
        return model(
            x.to(dtype),
            **{
                name: mask.to(x.device, None if mask.dtype == torch.bool else dtype)
                for name, mask in masks.items()
            },
        )[~padding.to(x.device)]

    with torch.no_grad():
        found = [run(f, x.to("spyre"), x.dtype) for f in (device, compiled(device))]
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            reference = run(wide, device_value(x), torch.float64)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
        rounded = oracle(lambda x: run(wide, x, torch.float64), device_value(x))
    assert torch_spyre.fallback_report() == {}
    for actual in found:
        assert_like_oracle(actual.cpu(), reference, rounded, "encoder")


@pytest.mark.parametrize("lengths", [(7, 5), (1, 7), (7, 7)])
def test_encoder_with_padding(lengths):
    """In eval mode PyTorch would pack the rows that the mask leaves."""
    padding = torch.arange(7) >= torch.tensor(lengths)[:, None]
    check_encoder(src_key_padding_mask=padding)


def test_encoder_with_masks():
    """True hides a key, numbers are added to the scores."""
    distance = torch.arange(7)[:, None] - torch.arange(7)
    check_encoder(mask=distance < 0)
    check_encoder(mask=-0.5 * distance.abs().float())
    check_encoder(
        mask=torch.where(distance < 0, float("-inf"), 0.0),
        src_key_padding_mask=torch.arange(7) >= torch.tensor([7, 3])[:, None],
    )


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("lengths", [(7, 5), (0, 3)])
@pytest.mark.parametrize("has_hook", [False, True])
@pytest.mark.parametrize("mask_check", [False, True])
def test_padding_becomes_zeros(lengths, has_hook, mask_check):
    """As where PyTorch has nested tensors; hooks keep it from the fused operator."""
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(64, 4, 96, batch_first=True)
    norm = nn.LayerNorm(64, bias=False)
    model = nn.TransformerEncoder(layer, 2, norm, mask_check=mask_check).eval()
    x = torch.randn(2, 7, 64)
    padding = torch.arange(7) >= torch.tensor(lengths)[:, None]
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=padding)
        if has_hook:
            model.layers[0].register_forward_hook(lambda *_: None)
        mask = padding.to("spyre")
        found = model.to("spyre")(x.to("spyre"), src_key_padding_mask=mask)
    assert type(found) is torch.Tensor
    assert not found.cpu()[padding].any()
    torch.testing.assert_close(found.cpu(), expected)


def test_attention_that_has_no_mask_of_padding():
    layer = nn.TransformerEncoderLayer(64, 4, 96, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval().to("spyre")
    padding = torch.arange(7, device="spyre").expand(2, 7) > 4
    rows = torch._nested_tensor_from_mask(
        torch.zeros(2, 7, 64, device="spyre"), ~padding
    )
    torch.backends.mha.set_fastpath_enabled(False)
    error = pytest.raises(NotImplementedError, match="enable_nested_tensor=False")
    try:
        with torch.no_grad(), error:
            model.layers[0](rows)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_gpt2_block(batch):
    torch.manual_seed(1)
    check_forward(GPT2Block(), half_input(batch, 64 if batch == 1 else 37, 768))


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_llama(batch):
    """Prefill and eight decode steps; the cache is written in place."""
    torch.manual_seed(1)
    # Two layers differ in what they read; more are more of the same.
    config = LlamaConfig(layers=4 if batch == 1 else 2)
    device, wide = on_device_and_wide(Llama(config).eval())
    prompt = 16
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(
        0, config.vocabulary, (batch, prompt + 8), generator=generator
    )
    like = torch.zeros(1, dtype=torch.float64)
    caches = {
        "device": device.make_cache(batch, torch.zeros(1).half().to("spyre")),
        "wide": wide.make_cache(batch, like),
        "oracle": wide.make_cache(batch, like),
    }
    forward = compiled(device)
    steps = [(0, prompt)] + [(prompt + i, prompt + i + 1) for i in range(8)]
    before = len(compiled_parts())
    for start, stop in steps:
        part, positions = tokens[:, start:stop], torch.arange(start, stop)
        with torch.no_grad():
            actual = forward(
                part.to("spyre"), positions.to("spyre"), caches["device"]
            ).cpu()
            reference = wide(part, positions, caches["wide"])
            rounded = oracle(wide, part, positions, caches["oracle"])
        assert_like_oracle(actual, reference, rounded, f"tokens {start} to {stop}")
    assert torch_spyre.fallback_report() == {}
    assert len(compiled_parts()) - before == 2, "prefill and decode compile once each"
    for kind in (0, 1):
        for layer in range(config.layers):
            actual = caches["device"][layer][kind].cpu()
            assert (actual[:, :, prompt + 8 :] == 0).all()
            assert_like_oracle(
                actual,
                caches["wide"][layer][kind],
                caches["oracle"][layer][kind],
                f"cache {kind} of layer {layer}",
            )


def test_decoding_writes_only_new_rows():
    """No kernel of one step writes a cache, or a copy of one, as a whole.

    Except for the temporary in which a matmul wants the keys: its second operand
    has its stick along the result's columns (spec/layouts.md), the cache has not.
    """
    torch.manual_seed(1)
    config = LlamaConfig(layers=2, max_tokens=1024)
    device = Llama(config).eval().half().to("spyre")
    cache = device.make_cache(1, torch.zeros(1).half().to("spyre"))
    before = [(k.clone(), v.clone()) for k, v in cache]
    position = torch.tensor([700])
    with torch.no_grad():
        compiled(device)(torch.tensor([[3]]).to("spyre"), position.to("spyre"), cache)
    (part,) = compiled_parts()[-1:]
    cache_bytes = 2 * cache[0][0].numel()
    # Scores of 8 heads over 1024 positions are written, too: 16 KiB a time.
    kernels = [k for k in part.report() if not k["name"].endswith("_restickify")]
    assert sum(k["name"].endswith("_scatter") for k in kernels) == 2 * len(cache)
    assert max(k["device_bytes_written"] for k in kernels) < cache_bytes / 4
    for now, then in zip(cache, before, strict=True):
        for a, b in zip(now, then, strict=True):
            a, b = a.cpu(), b.cpu()
            assert (a[:, :, 700] != 0).any()
            a[:, :, 700] = 0
            assert_exact(a, b)


def encoder(activation, *sizes):
    return nn.TransformerEncoderLayer(
        *sizes, dropout=0.0, batch_first=True, activation=activation
    )


#: Name -> (model, seed, shapes of input and target). With relu the seed is one
#: where no value at zero is rounded to the other side: the gradient jumps there,
#: which says nothing about accuracy.
TRAINED = {
    "mlp": (lambda: MLP(70, 130, 33), 1, (5, 70), (5, 33)),
    "encoder": (lambda: encoder("relu", 128, 4, 256), 2, *[(2, 17, 128)] * 2),
    "gelu encoder": (lambda: encoder("gelu", 128, 4, 256), 1, *[(2, 17, 128)] * 2),
    "encoder 512": (lambda: encoder("gelu", 512, 8), 1, *[(1, 128, 512)] * 2),
}


@pytest.mark.parametrize("name", TRAINED)
def test_training_step(name):
    """Forward under torch.compile; backward and SGD as users write them."""
    make, seed, x_shape, y_shape = TRAINED[name]
    torch.manual_seed(seed)
    device, wide = on_device_and_wide(make().train())
    x, target = half_input(*x_shape), half_input(*y_shape, seed=1)
    x_wide, target_wide = device_value(x), device_value(target)

    def loss_of(model):
        return lambda x, target: F.mse_loss(model(x), target)

    loss = compiled(loss_of(device))(x.to("spyre"), target.to("spyre"))
    loss.backward()
    gradients = to_host([p.grad for p in device.parameters()])
    before = to_host(list(device.parameters()))

    optimizer = torch.optim.SGD(device.parameters(), lr=0.125)
    torch.compile(optimizer.step, backend="spyre", dynamic=False)()
    after = to_host(list(device.parameters()))
    assert torch_spyre.fallback_report() == {}

    def wide_step():
        wide.zero_grad()
        loss = loss_of(wide)(x_wide, target_wide)
        loss.backward()
        return loss.detach().clone(), [p.grad.clone() for p in wide.parameters()]

    reference, reference_gradients = wide_step()
    rounded, rounded_gradients = oracle(wide_step)
    # A single number may be exact by chance in the oracle: allow one rounding.
    error = abs(loss.item() - reference.item())
    allowed = 2 * abs(rounded.item() - reference.item()) + 2.0**-9 * reference.item()
    assert error <= allowed
    names = [n for n, _ in wide.named_parameters()]
    for n, *g in zip(
        names, gradients, reference_gradients, rounded_gradients, strict=True
    ):
        assert_like_oracle(*g, f"gradient of {n}")
    for n, old, g, new in zip(names, before, gradients, after, strict=True):
        stepped = device_value(old) - 0.125 * device_value(g)
        error = (new.double() - stepped).abs()
        # The step is rounded once or, as lr * g, twice.
        allowed = 2.0**-9 * stepped.abs() + 2.0**-10 * (0.125 * g.double()).abs()
        assert (error <= allowed + 2.0**-24).all(), f"{n} after SGD"


def run_dumped(folder):
    """Runs a dumped part with spyre-run; returns its outputs by name."""
    environment = {**os.environ, "PATH": f"{SPYRE_RUN.parent}:{os.environ['PATH']}"}
    result = subprocess.run(
        ["sh", str(folder / "run.sh")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return {p.stem: np.load(p) for p in (folder / "out").glob("*.npy")}


STANDALONE = {
    "mlp": (lambda: MLP(130, 515, 70), (130,)),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(512, 8, batch_first=True),
        (128, 512),
    ),
    "gpt2": (lambda: GPT2Block(), (33, 768)),
}


@pytest.mark.skipif(not SPYRE_RUN.exists(), reason="spyre-run is not built")
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", STANDALONE)
def test_spyre_run_gives_the_same_bits(name, batch, tmp_path, monkeypatch):
    make, shape = STANDALONE[name]
    torch.manual_seed(1)
    model = make().eval().half().to("spyre")
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    with torch.no_grad():
        actual = compiled(model)(half_input(batch, *shape).to("spyre")).cpu()
    (folder,) = [p for p in tmp_path.iterdir() if p.is_dir()]
    result = torch.from_numpy(run_dumped(folder)["out0"])
    assert_exact(result.view(actual.shape), actual)


def assert_among(tensor, outputs):
    """Some output of a dumped program holds this tensor, bit for bit.

    A program returns what the user's tensor is a view of: the shape may differ,
    and a matrix be transposed.
    """
    assert any(
        np.array_equal(stored.ravel(), tensor.numpy().ravel())
        for output in outputs
        for stored in (output, output.T)
    )


@pytest.mark.skipif(not SPYRE_RUN.exists(), reason="spyre-run is not built")
@pytest.mark.parametrize("name", ["mlp", "encoder", "encoder 512"])
def test_spyre_run_of_a_training_step(name, tmp_path, monkeypatch):
    """Forward, backward and optimizer step are programs like any other."""
    make, seed, x_shape, y_shape = TRAINED[name]
    torch.manual_seed(seed)
    model = make().train().half().to("spyre")
    x, target = half_input(*x_shape), half_input(*y_shape, seed=1)
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    loss = compiled(lambda x, y: F.mse_loss(model(x), y))(
        x.to("spyre"), target.to("spyre")
    )
    loss.backward()
    gradients = to_host([p.grad for p in model.parameters()])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
    torch.compile(optimizer.step, backend="spyre", dynamic=False)()
    folders = [p for p in tmp_path.iterdir() if p.is_dir()]
    assert len(folders) >= 3
    outputs = [o for folder in folders for o in run_dumped(folder).values()]
    for tensor in [loss.cpu().detach(), *gradients, *to_host([*model.parameters()])]:
        assert_among(tensor, outputs)


@pytest.mark.skipif(not SPYRE_RUN.exists(), reason="spyre-run is not built")
@pytest.mark.parametrize("batch", [1, 3])
def test_spyre_run_of_prefill_and_decode(batch, tmp_path, monkeypatch):
    """Programs that update their arguments leave the same caches."""
    torch.manual_seed(1)
    config = LlamaConfig(layers=2)
    model = Llama(config).eval().half().to("spyre")
    cache = model.make_cache(batch, torch.zeros(1).half().to("spyre"))
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    forward = compiled(model)
    prompt, known = torch.tensor([[5, 9, 2]] * batch), set()
    for tokens, positions in [
        (prompt, torch.arange(3)),
        (prompt[:, :1], torch.tensor([3])),
    ]:
        with torch.no_grad():
            actual = forward(tokens.to("spyre"), positions.to("spyre"), cache).cpu()
        (folder,) = {p for p in tmp_path.iterdir() if p.is_dir()} - known
        known.add(folder)
        outputs = run_dumped(folder)
        logits = torch.from_numpy(outputs.pop("out0"))
        assert_exact(logits.view(actual.shape), actual)
        for tensor in to_host([t for pair in cache for t in pair]):
            assert_among(tensor, outputs.values())


def test_spyre_run_links_no_torch():
    if not SPYRE_RUN.exists():
        pytest.skip("spyre-run is not built")
    libraries = subprocess.run(
        ["ldd", str(SPYRE_RUN)], capture_output=True, text=True, check=True
    ).stdout
    # Names only: an address may contain "c10".
    names = [line.split()[0] for line in libraries.splitlines()]
    assert not [name for name in names if "torch" in name or "libc10" in name]
