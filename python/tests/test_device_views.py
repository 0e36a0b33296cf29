# SPDX-License-Identifier: Apache-2.0
import pytest
import torch
from reference import assert_same, round_trip, sample
from torch_spyre import _C

# Aliasing operators that no strided tensor of a supported dtype reaches.
NOT_STRIDED = {
    "aten::_indices",
    "aten::_values",
    "aten::_coalesced_",
    "aten::ccol_indices",
    "aten::col_indices",
    "aten::crow_indices",
    "aten::indices",
    "aten::row_indices",
    "aten::values",
    "aten::_sparse_broadcast_to",
    "aten::_nested_get_values",
    "aten::_nested_view_from_buffer",
    "aten::_nested_view_from_jagged",
}


def aliasing_operators():
    """ATen operators of which a result aliases an argument they only read."""
    for full_name in torch._C._dispatch_get_all_op_names():
        name, _, overload = full_name.partition(".")
        if not name.startswith("aten::"):
            continue
        schema = torch._C._get_schema(name, overload)
        infos = [r.alias_info for r in schema.returns]
        reads_tensor = any("Tensor" in str(a.type) for a in schema.arguments)
        if reads_tensor and any(i is not None and not i.is_write for i in infos):
            yield name, full_name


def test_every_aliasing_operator_has_a_kernel():
    operators = dict.fromkeys(
        full_name for name, full_name in aliasing_operators() if name not in NOT_STRIDED
    )
    assert len(operators) > 60
    keys = [
        "PrivateUse1",
        "CompositeImplicitAutograd",
        "CompositeExplicitAutograd",
    ]
    missing = [
        name
        for name in operators
        if not any(
            torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys
        )
    ]
    assert missing == []


VIEWS = {
    "view": lambda x: x.view(6, 2, 70),
    "view_dtype": lambda x: x.view(torch.int16),
    "reshape": lambda x: x.reshape(12, 70),
    "unsafe_view": lambda x: torch.ops.aten._unsafe_view(x, [12, 70]),
    "reshape_alias": lambda x: torch.ops.aten._reshape_alias(x, [12, 70], [70, 1]),
    "as_strided": lambda x: x.as_strided((5, 3), (2, 71), 9),
    "alias": lambda x: torch.ops.aten.alias(x),
    "detach": lambda x: x.detach(),
    "unfold": lambda x: x.unfold(2, 16, 9),
    "transpose": lambda x: x.transpose(0, 2),
    "permute": lambda x: x.permute(2, 0, 1),
    "expand": lambda x: x[:, :1].expand(3, 8, 70),
    "select": lambda x: x[1],
    "slice": lambda x: x[:, 1:3, 5:66:2],
    "split": lambda x: x.split(16, 2)[3],
    "chunk": lambda x: x.chunk(3, 2)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "squeeze": lambda x: x[:1].squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "diagonal": lambda x: x.diagonal(0, 0, 1),
    "movedim": lambda x: x.movedim(0, 2),
    "unflatten": lambda x: x.unflatten(2, (7, 10)),
    "narrow": lambda x: x.narrow(2, 60, 5),
    "tensor_split": lambda x: x.tensor_split(4, 2)[1],
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "view_as": lambda x: x.view_as(torch.empty(12, 70)),
    "expand_as": lambda x: x[0, 0].expand_as(torch.empty(2, 70)),
    "mT": lambda x: x.mT,
}


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("name", VIEWS)
def test_views_share_storage_and_values(name):
    view = VIEWS[name]
    x = sample((3, 4, 70), torch.float16)
    device = x.to("spyre")
    on_device, on_host = view(device), view(round_trip(x))
    assert on_device.shape == on_host.shape
    assert on_device.stride() == on_host.stride()
    assert on_device.storage_offset() == on_host.storage_offset()
    assert on_device.untyped_storage()._cdata == device.untyped_storage()._cdata
    assert_same(on_device.cpu(), on_host)


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize(
    "name", sorted(VIEWS.keys() - {"expand", "expand_as", "unfold", "as_strided"})
)
def test_writes_through_views_reach_the_base(name):
    x = sample((3, 4, 70), torch.float16)
    device, host = x.to("spyre"), round_trip(x)
    VIEWS[name](device).fill_(3)
    VIEWS[name](host).fill_(3)
    assert_same(device.cpu(), round_trip(host))


@pytest.mark.filterwarnings("ignore:.*has no spyre kernel")
def test_in_place_operators_on_views():
    x = torch.arange(210.0).view(3, 70)
    device = x.to("spyre")
    device[:, 1::2].t()[3:].mul_(2).add_(1)
    x[:, 1::2].t()[3:].mul_(2).add_(1)
    device[1] += device[0]
    x[1] += x[0]
    torch.add(device[0], device[1], out=device[2])
    torch.add(x[0], x[1], out=x[2])
    assert_same(device.cpu(), x)


def test_versions_and_autograd_through_views():
    x = torch.randn(3, 70).to("spyre").requires_grad_()
    y = x.t()[2:5].clone()
    y.sum().backward()
    expected = torch.zeros(3, 70)
    expected[:, 2:5] = 1
    assert_same(x.grad.cpu(), expected)
    z = x.detach()
    version = z._version
    z[0].zero_()
    assert z._version == version + 1


def test_complex_views_are_refused():
    with pytest.raises(TypeError, match=r"complex64.*supported are"):
        torch.view_as_complex(torch.zeros(3, 2, device="spyre"))
    with pytest.raises(TypeError, match=r"float64.*supported are"):
        torch.zeros(4, 2, device="spyre").view(torch.float64)


def test_out_of_bounds_views_are_refused():
    x = torch.zeros(4, device="spyre")
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.as_strided((5,), (1,))


def test_set_and_resize():
    x = torch.arange(12.0).to("spyre")
    y = torch.empty(0, device="spyre").set_(x)
    assert y.data_ptr() == x.data_ptr() and y.cpu().tolist() == x.cpu().tolist()
    y.set_(x.untyped_storage(), 2, (2, 3), (1, 4))
    assert y.cpu().tolist() == [[2, 6, 10], [3, 7, 11]]
    y.set_(x.untyped_storage())
    assert y.shape == (12,)
    y.set_(x, 3, (4,), (2,))
    assert y.cpu().tolist() == [3, 5, 7, 9]
    y.set_()
    assert y.numel() == 0
    y.resize_(3, 70).fill_(2)
    assert y.device_tensor_layout() == _C.SpyreTensorLayout([3, 70], torch.float32)
    assert y.cpu().unique().tolist() == [2]

    x.resize_(2, 3)
    assert x.cpu().tolist() == [[0, 1, 2], [3, 4, 5]]
    x.resize_(30)
    assert x[:12].cpu().tolist() == list(range(12))
    x[12:] = 1
    assert x.cpu().sum() == 66 + 18
    with pytest.raises(RuntimeError, match="spyre"):
        x.set_(torch.zeros(3).untyped_storage())


def test_resize_keeps_values_in_another_layout():
    x = sample((130, 70), torch.float16)
    layout = _C.SpyreTensorLayout([130, 70], [70, 1], torch.float16, [1, 0])
    device = x.to("spyre", device_layout=layout)
    device.resize_(200, 70)
    assert_same(device[:130].cpu(), round_trip(x))


def test_storages():
    x = sample((4, 70), torch.float16).to("spyre")
    storage = x.untyped_storage()
    assert storage.nbytes() == 4 * 70 * 2
    assert storage.device == torch.device("spyre", 0)
    assert bytes(storage.cpu().tolist()) == x.cpu().numpy().tobytes()
    layout = x.device_tensor_layout()

    # FSDP frees a parameter's storage and brings it back.
    allocated = torch.spyre.memory_allocated()
    storage.resize_(0)
    assert torch.spyre.memory_allocated() < allocated
    with pytest.raises(RuntimeError, match="0 bytes"):
        x.cpu()
    storage.resize_(560)
    assert x.device_tensor_layout() == layout
    assert_same(x.fill_(1).cpu(), torch.ones(4, 70).half())

    raw = torch.UntypedStorage(280, device="spyre")
    assert sum(raw.cpu().tolist()) == 0
    raw.copy_(torch.arange(70, dtype=torch.float32).untyped_storage())
    y = torch.empty(0, device="spyre").set_(raw, 0, (7, 10))
    assert y.cpu().flatten().tolist() == list(range(70))
    assert y.device_tensor_layout().device_size == [1, 7, 32]
    odd = torch.UntypedStorage(10, device="spyre")
    z = torch.empty(0, device="spyre").set_(odd, 0, (2,))
    assert z.cpu().tolist() == [0, 0]


def test_pointers_lie_in_the_reserved_range():
    x = torch.zeros(5, 70, dtype=torch.float16, device="spyre")
    assert x.data_ptr() % 128 == 0
    assert x[1:].data_ptr() == x.data_ptr() + 140
    serial, address, sizes, strides, layout, dtype = _C.tensor_info(x[1:])
    assert (sizes, strides, dtype) == ([5, 70], [70, 1], torch.float16)
    assert layout == x.device_tensor_layout()
    assert address % 128 == 0
    y = torch.zeros(1, device="spyre")
    assert _C.tensor_info(y)[0] != serial
    assert y.data_ptr() - x.data_ptr() == _C.tensor_info(y)[1] - address
