# SPDX-License-Identifier: Apache-2.0
import copy
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
import torch_spyre
from reference import (
    DTYPES,
    assert_same,
    decode_dl16,
    encode_dl16,
    round_dl16,
    round_trip,
    sample,
    sticks,
)
from torch_spyre import _C

SHAPES = [
    (),
    (0,),
    (3, 0, 5),
    (1,),
    (63,),
    (65,),
    (1, 1, 1),
    (7, 13),
    (64, 64),
    (5, 100, 150),
    (2, 1, 67, 3),
    (2, 3, 5, 7, 11),
    (2, 1, 3, 2, 3, 5),
]

pytestmark = pytest.mark.usefixtures("no_fallback")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_round_trip_and_stored_bytes(shape, dtype):
    x = sample(shape, dtype)
    device = x.to("spyre")
    assert device.device == torch.device("spyre", 0)
    assert device.stride() == x.stride()
    assert_same(device.cpu(), round_trip(x))
    assert _C.read_device_bytes(device) == (sticks(x) if x.numel() else b"")


def test_default_layout_of_the_issue():
    x = torch.randn(5, 100, 150, dtype=torch.float16).to("spyre")
    layout = x.device_tensor_layout()
    assert layout.device_size == [100, 3, 5, 64]
    assert layout.stride_map == [150, 64, 15000, 1]
    assert layout.device_dtype == _C.DataFormats.SEN169_FP16


def test_every_half_value():
    x = torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.float16)
    x = x[~x.isnan()]
    assert_same(x.to("spyre").cpu(), round_trip(x))


def test_nan_comes_back_as_infinity():
    x = torch.tensor([float("nan"), 1.0], dtype=torch.float16).to("spyre")
    assert x.cpu().tolist() == [float("inf"), 1.0]


def test_reference_codec():
    codes = torch.arange(2**16).numpy().astype("uint16")
    assert (encode_dl16(decode_dl16(codes)) == codes).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.transpose(0, 1),
        lambda x: x.permute(2, 0, 1),
        lambda x: x[:, ::2],
        lambda x: x[1:, 3:, 5:70:3],
        lambda x: x[:1].expand(4, 9, 70),
        lambda x: x[1, 2, 3],
        lambda x: x.flatten()[5:].as_strided((4, 5), (1, 2)),
        lambda x: x.unsqueeze(0).unsqueeze(0).unsqueeze(0).unsqueeze(0),
    ],
    ids=["t", "permute", "step", "slice", "expand", "scalar", "overlap", "rank7"],
)
def test_views_travel_both_ways(view, dtype):
    x = sample((3, 9, 70), dtype)
    expected = round_trip(view(x).contiguous())
    # A view of a host tensor to the device, and a view made on the device.
    assert_same(view(x).to("spyre").cpu(), expected)
    assert_same(view(x.to("spyre")).cpu(), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_partial_writes_keep_the_rest(dtype):
    x, y = sample((4, 9, 70), dtype), sample((4, 5, 35), dtype, seed=1)
    device = x.to("spyre")
    device[:, 2:7, ::2].copy_(y)
    expected = x.clone()
    expected[:, 2:7, ::2] = y
    assert_same(device.cpu(), round_trip(expected))
    assert _C.read_device_bytes(device) == sticks(expected)


def test_partial_writes_keep_values_that_the_host_cannot_hold():
    # 1e8 is a DL16 value and no fp16 value: reading the storage to the host
    # and writing it back would make it infinite.
    device = torch.empty(4, 70, dtype=torch.float16, device="spyre")
    device.copy_(torch.full((4, 70), 1e8))
    device[0, :5] = 3
    wide = device.to("cpu", torch.float32)
    assert wide[0, 0] == 3
    assert wide[1, 1] == round_dl16(torch.tensor(1e8))
    other = torch.empty_like(device).copy_(device.t().t())
    assert other.to(torch.float32).cpu()[2, 3] == round_dl16(torch.tensor(1e8))


@pytest.mark.parametrize("to", DTYPES, ids=str)
@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_conversion_on_the_way(source, to):
    x = torch.tensor([[0, 1, 2, 100], [3, 0, 5, 7]]).to(source)
    assert_same(x.to("spyre", to).cpu(), x.to(to))
    assert_same(x.to("spyre").to("cpu", to), x.to(to))
    assert_same(x.to("spyre").to(to).cpu(), x.to(to))


def test_conversion_to_half_rounds_once():
    x = torch.randn(1000) * 1000
    expected = round_dl16(x)
    assert_same(x.to("spyre", torch.float16).to("cpu", torch.float32), expected)
    on_device = x.to("spyre").to(torch.float16)
    assert_same(on_device.to("cpu", torch.float32), expected)
    partial = torch.zeros(2, 1000, dtype=torch.bfloat16, device="spyre")
    partial[1] = x
    assert_same(partial[1].to("cpu", torch.float32), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_between_device_tensors(dtype):
    x = sample((6, 70), dtype)
    device = x.to("spyre")
    assert_same(device.clone().cpu(), round_trip(x))
    assert_same(device.t().contiguous().cpu(), round_trip(x.t().contiguous()))
    target = torch.zeros(6, 140, dtype=dtype, device="spyre")
    target[:, ::2].copy_(device)
    assert_same(target[:, ::2].cpu(), round_trip(x))
    assert not target[:, 1::2].cpu().any()
    target[:, ::2].copy_(device[:1])
    assert_same(target[3, ::2].cpu(), round_trip(x[0]))


def test_layouts_given_by_the_user():
    x = sample((130, 70), torch.float16)
    order = _C.SpyreTensorLayout([130, 70], [70, 1], torch.float16, [1, 0])
    device = x.to("spyre", device_layout=order)
    assert device.device_tensor_layout() == order
    assert _C.read_device_bytes(device) == sticks(x, [1, 0])
    assert_same(device.cpu(), round_trip(x))
    assert device.to(device_layout=order) is device
    with pytest.raises(TypeError, match="must be a SpyreTensorLayout, found int"):
        x.to("spyre", device_layout=3)
    assert device.to(device_layout=order, copy=True) is not device

    default = _C.SpyreTensorLayout([130, 70], torch.float16)
    again = device.to(device_layout=default)
    assert again.device_tensor_layout() == default
    assert_same(again.cpu(), round_trip(x))

    sparse = _C.SpyreTensorLayout([130, 70], [70, 1], torch.float16, [0, 1, -1])
    device = torch.empty(130, 70, dtype=torch.float16, device_layout=sparse)
    device.copy_(x)
    assert _C.read_device_bytes(device) == sticks(x, [0, 1, -1])
    device[3, 5:9] = 1
    x[3, 5:9] = 1
    assert_same(device.cpu(), round_trip(x))
    assert _C.read_device_bytes(device) == sticks(x, [0, 1, -1])


def test_layout_of_a_transposed_host_tensor():
    x = sample((70, 130), torch.float16).t()
    layout = _C.SpyreTensorLayout([130, 70], list(x.stride()), torch.float16, [0, 1])
    device = x.to("spyre", device_layout=layout)
    assert device.stride() == x.stride()
    assert_same(device.cpu(), round_trip(x))


def test_wrong_layouts_are_refused():
    x = torch.zeros(130, 70, dtype=torch.float16)
    small = _C.SpyreTensorLayout([64, 64], torch.float16)
    other = _C.SpyreTensorLayout([130, 70], torch.float32)
    for layout in (small, other):
        with pytest.raises(RuntimeError, match="layout"):
            x.to("spyre", device_layout=layout)
        with pytest.raises(RuntimeError, match="layout"):
            torch.empty(130, 70, dtype=torch.float16, device_layout=layout)
    with pytest.raises(ValueError, match="spyre"):
        x.to("cpu", device_layout=small)


def test_bytes_seen_through_another_dtype():
    x = sample((4, 70), torch.float16)
    device = x.to("spyre")
    assert_same(device.view(torch.int16).cpu(), round_trip(x).view(torch.int16))
    device.view(torch.int16)[1, :3] = torch.tensor([0x3C00, 0x4000, 0x4200]).short()
    assert device[1, :3].cpu().tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_rows_and_pages_of_a_pool_of_bytes(dtype):
    """Caches that serve many requests are bytes: keys and values are views of them."""

    def run(device):
        pool = torch.zeros(4096, dtype=torch.uint8, device=device)
        keys = pool.view(dtype)[:512].view(16, 2, 16)
        values = pool.view(dtype)[128:640].view(16, 2, 16)
        new = (torch.arange(96, dtype=dtype).view(3, 2, 16) - 40).to(device)
        keys.index_copy_(0, torch.tensor([7, 0, 11], device=device), new)
        values.index_copy_(0, torch.tensor([2, 9, 15], device=device), new * 4)
        pages = pool.view(-1, 256)
        copied = pages.index_select(0, torch.tensor([1, 0], device=device))
        pages.index_copy_(0, torch.tensor([6, 5], device=device), copied)
        taken = keys.index_select(0, torch.tensor([11, 3, 7, 0], device=device))
        return taken, pool.view(dtype), pool

    for expected, actual in zip(run("cpu"), run("spyre"), strict=True):
        assert_same(actual.cpu(), expected)
    # The bytes themselves are copied on the device, what is seen in them on the CPU.
    counts = {"aten::index_copy_": 2, "aten::index_select": 1}
    assert torch_spyre.fallback_report() == counts
    torch_spyre.reset_fallback_report()


def test_fill_and_scalars():
    x = torch.full((3, 70), 1.5, dtype=torch.float16, device="spyre")
    x[1] = 2
    x[2, 3] = -4
    assert x[0, 0].item() == 1.5 and x[1, 69].item() == 2 and x[2, 3].item() == -4
    assert x[2].zero_().cpu().count_nonzero() == 0
    assert x.zero_().cpu().count_nonzero() == 0
    assert float(torch.tensor(2.5, device="spyre")) == 2.5
    assert torch.tensor(True, device="spyre").item() is True


def test_deepcopy_and_pickle_keep_values(tmp_path):
    layout = _C.SpyreTensorLayout([30, 70], [70, 1], torch.float16, [1, 0])
    x = sample((30, 70), torch.float16)
    device = x.to("spyre", device_layout=layout)
    other = copy.deepcopy(device)
    assert other.device_tensor_layout() == layout
    assert other.data_ptr() != device.data_ptr()
    assert_same(other.cpu(), device.cpu())
    torch.save({"x": device, "view": device[3:, 5:]}, tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt")
    assert loaded["x"].device == device.device
    assert_same(loaded["x"].cpu(), device.cpu())
    assert_same(loaded["view"].cpu(), device[3:, 5:].cpu())
    on_cpu = torch.load(tmp_path / "x.pt", map_location="cpu")
    assert_same(on_cpu["view"], device[3:, 5:].cpu())


def test_bf16_out_of_range_warns():
    x = torch.tensor([1e38, 1e-38, 1.0], dtype=torch.bfloat16)
    with pytest.warns(UserWarning, match="2 finite bfloat16 values"):
        device = x.to("spyre")
    assert device.cpu().tolist() == [float("inf"), 0.0, 1.0]


def test_printing():
    text = repr(torch.tensor([[1.0, 2.5]], device="spyre"))
    assert text == "tensor([[1.0000, 2.5000]], device='spyre:0')"


TRANSLATE = Path(
    os.environ.get("SPYRE_BUILD_DIR", Path(__file__).resolve().parents[2] / "build")
)
TRANSLATE = TRANSLATE / "bin" / "spyre-translate"


@pytest.mark.skipif(not TRANSLATE.exists(), reason="spyre-translate is not built")
@pytest.mark.parametrize("dtype", [torch.int32, torch.float32])
@pytest.mark.parametrize(
    ("size", "order"),
    [
        ((1,), (0,)),
        ((63,), (0,)),
        ((65,), (0,)),
        ((7, 70), (0, 1)),
        ((33, 65), (1, 0)),
        ((5, 37, 100), (0, 1, 2)),
        ((2, 31, 3, 33), (2, 0, 3, 1)),
        ((4, 41), (0, 1, -1)),
    ],
)
def test_copies_are_what_the_printed_descriptors_say(size, order, dtype):
    x = torch.arange(1, 1 + torch.Size(size).numel()).reshape(size).to(dtype)
    layout = _C.SpyreTensorLayout(size, x.stride(), dtype, order)
    y = x.to("spyre", device_layout=layout)
    command = [TRANSLATE, "--print-dci", "--json", f"--dtype={str(dtype)[6:]}"]
    for flag, values in (("size", size), ("dim-order", order)):
        command.append(f"--{flag}={','.join(map(str, values))}")
    result = subprocess.run(command, check=True, capture_output=True, timeout=300)
    dci = json.loads(result.stdout)
    assert dci["device"]["device_size"] == list(layout.device_size)
    host = x.numpy().reshape(-1)
    # Padding holds zeros.
    device = np.zeros(dci["device"]["bytes"] // 4, host.dtype)
    for nest in dci["descriptors"]:
        for index in np.ndindex(*nest["sizes"]):
            steps = np.array(index)
            at = nest["device_offset"] + steps @ nest["device_strides"]
            device[at] = host[nest["host_offset"] + steps @ nest["host_strides"]]
    assert bytes(_C.read_device_bytes(y)) == device.tobytes()
    assert (y.cpu() == x).all()


def test_moving_a_module_computes_no_parametrized_weight():
    """That of spectral_norm iterates whenever it is computed in training."""
    module = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(5, 7))
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    after = module.to("spyre").state_dict()
    assert all(torch.equal(after[name].cpu(), before[name]) for name in before)


WRITES = {
    "copy_": lambda v, y: v.copy_(y),
    "copy_ from the host": lambda v, y: v.copy_(y.cpu()),
    "fill_": lambda v, y: v.fill_(3),
    "zero_": lambda v, y: v.zero_(),
    "add_": lambda v, y: v.add_(y),
    "out=": lambda v, y: torch.add(y, 1, out=v),
    "set": lambda v, y: v.__setitem__(slice(1, 3), y[1:3]),
}


@pytest.mark.parametrize("name", WRITES)
def test_views_that_are_negated_when_read_are_written(name):
    for other in (torch.arange(5.0), torch.arange(5, dtype=torch.uint8)):
        bases = torch.tensor([4.0, -2, 7, 0, 1]), torch.tensor([4.0, -2, 7, 0, 1])
        base = bases[1].to("spyre")
        for x, y in ((bases[0], other), (base, other.to("spyre"))):
            WRITES[name](torch._neg_view(x), y)
        assert torch.equal(base.cpu(), bases[0])
        clone = torch._neg_view(base).clone()
        assert not clone.is_neg() and torch.equal(clone.cpu(), -bases[0])


def test_parts_of_conjugates_on_the_host_are_written():
    values = torch.tensor([1.0, -2, 3]).to("spyre")
    z = torch.zeros(3, dtype=torch.complex64)
    z.conj().imag.copy_(values)
    z.conj().real.copy_(values + 1)
    assert z.tolist() == [2 - 1j, -1 + 2j, 4 - 3j]
    z.conj().copy_(values)
    assert z.tolist() == [1, -2, 3]
    part = (z + 5j).conj().imag
    assert part.is_neg()
    assert torch.empty(3, device="spyre").copy_(part).tolist() == [-5, -5, -5]
