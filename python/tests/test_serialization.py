# SPDX-License-Identifier: Apache-2.0
"""Saved files hold host images; a layout of one's own travels along."""

import io
import pickle
import random
from multiprocessing.reduction import ForkingPickler
from types import ModuleType

import pytest
import torch
import torch.multiprocessing
from interpreters import run_python
from torch import nn
from torch_spyre import _C
from torch_spyre.frontend import dynamo

pytestmark = pytest.mark.usefixtures("no_fallback")


def sample():
    generator = torch.Generator().manual_seed(0)
    return torch.randint(-8, 9, (70, 5), generator=generator).half()


def saved(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


def in_order(x, order):
    layout = _C.SpyreTensorLayout(list(x.shape), list(x.stride()), x.dtype, order)
    return x.to("spyre", device_layout=layout)


@pytest.mark.parametrize("weights_only", [True, False])
def test_layout_travels(weights_only):
    x = in_order(sample(), [1, 0])
    y = torch.load(saved(x), weights_only=weights_only)
    assert y.device_tensor_layout() == x.device_tensor_layout()
    assert torch.equal(y.cpu(), sample())
    default = torch.load(saved(sample().to("spyre")), weights_only=weights_only)
    assert default.device_tensor_layout() == _C.SpyreTensorLayout([70, 5], x.dtype)


def test_views_share_storage_and_layout():
    x = in_order(sample(), [1, 0])
    a, b = torch.load(saved([x, x[3:9]]), weights_only=True)
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    assert b.device_tensor_layout() == x.device_tensor_layout()
    assert torch.equal(b.cpu(), sample()[3:9])
    b.zero_()
    assert not a[3:9].cpu().any()


def test_state_dict_of_a_linear_layer():
    module = nn.Linear(70, 8).half().to("spyre")
    state = torch.load(saved(module.state_dict()), weights_only=True)
    assert (
        state["weight"].device_tensor_layout() == module.weight.device_tensor_layout()
    )
    other = nn.Linear(70, 8).half().to("spyre")
    other.load_state_dict(state)
    assert torch.equal(other.weight.cpu(), module.weight.cpu())


def test_other_machines_need_no_package(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(in_order(sample(), [1, 0]), path)
    code = (
        "import sys, torch; "
        f"x = torch.load({str(path)!r}, map_location='cpu', weights_only=True); "
        "assert 'torch_spyre' not in sys.modules and x.device.type == 'cpu'; "
        "print(x.sum().item())"
    )
    result = run_python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) == sample().sum().item()


@pytest.mark.parametrize(
    "text",
    [
        "70,5/5,1/1,70,64/64,5,1",
        "70,x/5,1/1,70,64/64,5,1/0",
        "70,5/1,5,1/1,70,64/64,5,1/0",
        "70,5/5,1/1,70,64/64,5,1/9",
        "70,5/5,1/1,2,64/64,5,1/0",
        "70,6/6,1/1,70,64/64,6,1/0",
        "-70,-5/5,1/1,70,64/64,5,1/0",
        "9223372036854775807,5/5,1/1,70,64/64,5,1/0",
        "",
    ],
)
def test_damaged_layouts(text):
    x = sample().to("spyre")
    with pytest.raises(RuntimeError, match=r"saved layout .* is damaged"):
        torch._utils.set_tensor_metadata(x, {f"spyre.layout/{text}": True})
    assert torch.equal(x.cpu(), sample())


def test_what_is_no_layout():
    x = sample().to("spyre")
    whole = _C.SpyreTensorLayout([70, 5], x.dtype)
    right = "spyre.layout/70,5/5,1/1,70,64/64,5,1/0"
    for wrong in ({"spyre.layer/": True}, {right: True}, {"spyre.checksum/0": True}):
        with pytest.raises(RuntimeError, match=r"is damaged"):
            torch._utils.set_tensor_metadata(x, wrong)
    saved = torch._utils.get_tensor_metadata(x)
    torch._utils.set_tensor_metadata(x, saved)
    for changed in (x + 1, x[:, :4], x.t(), x.to("spyre").bfloat16()):
        with pytest.raises(RuntimeError, match=r"do not match their checksum"):
            torch._utils.set_tensor_metadata(changed, saved)
    assert x.device_tensor_layout() == whole


def same(a, b):
    return (
        (a.dtype, a.device, a.shape, a.stride(), a.device_tensor_layout())
        == (b.dtype, b.device, b.shape, b.stride(), b.device_tensor_layout())
    ) and torch.equal(a.cpu(), b.cpu())


def test_damaged_files():
    """Whatever is overwritten, loading raises or gives what was saved."""
    x = in_order(sample(), [1, 0])
    values = [x, x[3:9], torch.arange(7).to("spyre"), x.expand(3, 70, 5)]
    data = saved(values).getvalue()
    raised = 0
    for seed in range(-1, 120):
        choose = random.Random(seed)
        damaged = bytearray(data)
        for _ in range(choose.choice([1, 1, 2, 8]) if seed >= 0 else 0):
            damaged[choose.randrange(len(damaged))] = choose.randrange(256)
        try:
            loaded = torch.load(io.BytesIO(bytes(damaged)))
        except Exception:
            assert seed >= 0
            raised += 1
            continue
        assert len(loaded) == len(values), seed
        assert all(same(a, b) for a, b in zip(loaded, values, strict=True)), seed
    assert raised > 60


def test_damaged_layouts_in_the_old_file_format():
    """It has the values behind the tensors: these are not checked."""
    x = in_order(sample(), [1, 0])
    buffer = io.BytesIO()
    torch.save(x, buffer, _use_new_zipfile_serialization=False)
    data = buffer.getvalue()
    assert same(torch.load(io.BytesIO(data)), x)
    start = data.index(b"spyre.layout/")
    for position in range(start, data.index(b"spyre.checksum/") + 20):
        damaged = bytearray(data)
        damaged[position] ^= 1
        with pytest.raises(Exception):  # noqa: B017
            torch.load(io.BytesIO(bytes(damaged)))


def test_values_that_are_left_out():
    """torch.serialization.skip_data leaves values undefined."""
    data = saved(sample().to("spyre"))
    with torch.serialization.skip_data():
        x = torch.load(data)
    assert x.is_spyre and x.shape == (70, 5)


def test_no_sharing_between_processes():
    x = sample().to("spyre")
    queue = torch.multiprocessing.get_context("spawn").SimpleQueue()
    for send in (ForkingPickler.dumps, queue.put):
        for value in (x, nn.Parameter(x), x.untyped_storage(), {"x": [x[1:]]}):
            with pytest.raises(RuntimeError, match=r"send tensor\.cpu\(\) instead"):
                send(value)
    ForkingPickler.dumps(sample())


@pytest.mark.parametrize("pinned", (False, True))
def test_loaders_of_data_say_that_nothing_is_shared(pinned):
    """They wait without end for what a worker puts into their queue."""
    code = (
        f"pinned = {pinned}"
        + """
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, i):
        x = torch.full((3, 65), float(i))
        return x.to("spyre") if on_device else x
for on_device in (False, True):
    for batch in torch.utils.data.DataLoader(
        Data(), 2, num_workers=1, pin_memory=pinned
    ):
        print(batch.shape, batch.sum().item(), flush=True)
"""
    )
    result = run_python(code)
    assert result.stdout == "torch.Size([2, 3, 65]) 195.0\n", result.stderr
    assert result.returncode == 1
    last = result.stderr.rstrip().splitlines()[-1]
    assert "a spyre tensor cannot be sent" in last and "tensor.cpu() instead" in last


def test_pickle_and_the_old_file_format(tmp_path):
    x = sample().to("spyre")
    for saved in (
        x,
        x[1:],
        x.t(),
        nn.Parameter(x),
        (x > 0),
        torch.arange(5).to(x.device),
    ):
        copy = pickle.loads(pickle.dumps(saved))
        assert copy.is_spyre and type(copy) is type(saved)
        assert torch.equal(copy.cpu(), saved.cpu())
        assert copy.stride() == saved.stride()
        torch.save(saved, tmp_path / "old", _use_new_zipfile_serialization=False)
        assert torch.equal(torch.load(tmp_path / "old").cpu(), saved.cpu())
        host = torch.load(tmp_path / "old", map_location="cpu")
        assert torch.equal(host, saved.detach().cpu())
    module = nn.Linear(70, 3).half().to("spyre")
    copy = pickle.loads(pickle.dumps(module))
    assert torch.equal(copy.weight.cpu(), module.weight.cpu())
    assert torch.equal(
        copy(x.half().new_ones(2, 70)).cpu(), module(x.half().new_ones(2, 70)).cpu()
    )


def test_dlpack_to_the_cpu():
    x = sample()
    capsule = x.to("spyre").__dlpack__(dl_device=(1, 0))
    assert torch.equal(torch.utils.dlpack.from_dlpack(capsule), x)


def test_no_packages_of_aot_inductor():
    x = torch.ones(3, 5, device="spyre")
    program = torch.export.export(torch.nn.ReLU(), (x,))
    with pytest.raises(RuntimeError, match="makes no packages for spyre"):
        torch._inductor.aoti_compile_and_package(program)


def test_exported_programs():
    module = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
    x = torch.randn(70, 5, generator=torch.Generator().manual_seed(1))
    expected = module(x)
    program = torch.export.export(module, (x,)).module()
    result = program.to("spyre")(x.to("spyre"))
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-5, atol=1e-6)


class Opened:
    """As safetensors.safe_open is: with a list of devices, and with tensors."""

    def __init__(self, filename, framework, device="cpu", **kwargs):
        assert device in ("cpu", "cuda:1"), f"device {device} is invalid"
        self.arguments = (filename, framework, device, kwargs)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.closed = True

    def keys(self):
        return ["x"]

    def get_tensor(self, name):
        return sample()

    def get_tensors(self):
        return {"x": sample()}

    def get_slice(self, name):
        return sample()


def test_files_of_safetensors_go_to_the_device():
    library = ModuleType("safetensors")
    library.safe_open = Opened
    dynamo._HOOKS["safetensors"](library)
    for device in ("spyre", "spyre:0", 0):
        with library.safe_open("file", framework="pt", device=device) as file:
            assert file.keys() == ["x"]
            slices = file.get_slice("x")
            read = [file.get_tensor("x"), *file.get_tensors().values()]
        assert file.closed and slices.shape == sample().shape
        for x, expected in [*((x, sample()) for x in read), (slices[2:], sample()[2:])]:
            layout = expected.to("spyre").device_tensor_layout()
            assert x.device_tensor_layout() == layout
            assert torch.equal(x.cpu(), expected)
    others = [("file", "pt", "cuda:1"), ("file", "pt"), ("file", "np", "cpu")]
    for arguments in others:
        assert type(library.safe_open(*arguments, backend="mmap")) is Opened
    with pytest.raises(AssertionError, match="nowhere"):
        library.safe_open("file", "pt", device="nowhere")


def test_safetensors_loads_on_the_device(tmp_path):
    files = pytest.importorskip("safetensors.torch")
    x = sample()
    files.save_file({"x": x.to("spyre")}, tmp_path / "x.safetensors")
    (y,) = files.load_file(tmp_path / "x.safetensors", device="spyre").values()
    assert torch.equal((y + 1).cpu(), x + 1)
    with files.safe_open(tmp_path / "x.safetensors", "pt", device="spyre:0") as file:
        part = file.get_slice("x")[3:, :2]
    assert torch.equal((part + 1).cpu(), x[3:, :2] + 1)
