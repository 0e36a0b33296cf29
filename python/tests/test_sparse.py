# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors whose indices and values are on the device."""

import io

import pytest
import torch
import torch_spyre
from torch import nn

INDICES = torch.tensor([[0, 1, 1, 1], [2, 0, 2, 2]])
#: Not coalesced: one element is there twice.
COO = torch.sparse_coo_tensor(INDICES, torch.tensor([3.0, 4.0, 5.0, 6.0]), (2, 3))
CSR = COO.coalesce().to_sparse_csr()
DENSE = torch.arange(6.0).view(2, 3)
FACTOR = torch.arange(6.0).view(3, 2)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def dense(x: torch.Tensor) -> torch.Tensor:
    return x.cpu() if x.layout == torch.strided else x.cpu().to_dense()


def changed(x: torch.Tensor, change) -> torch.Tensor:
    x = x.clone()
    change(x)
    return x


FUNCTIONS = {
    "moved": lambda d: COO.to(d),
    "made of tensors": lambda d: torch.sparse_coo_tensor(
        INDICES.to(d), torch.ones(4).to(d), (2, 3)
    ),
    "made without sizes": lambda d: torch.sparse_coo_tensor(
        INDICES.to(d), torch.ones(4).to(d)
    ),
    "made of lists": lambda d: torch.sparse_coo_tensor(
        [[0, 1], [1, 0]], [1.0, 2.0], (2, 2), device=d
    ),
    "empty": lambda d: torch.sparse_coo_tensor((2, 3), device=d),
    "no rows": lambda d: torch.zeros(0, 3).to_sparse().to(d),
    "dense rows": lambda d: DENSE.to(d).to_sparse(1),
    "from dense": lambda d: DENSE.to(d).to_sparse(),
    "to dense": lambda d: COO.to(d).to_dense(),
    "bool": lambda d: COO.bool().to(d).to_dense(),
    "half": lambda d: COO.to(d).half(),
    "coalesced": lambda d: COO.to(d).coalesce(),
    "indices": lambda d: COO.to(d).coalesce().indices(),
    "values": lambda d: COO.to(d).coalesce().values(),
    "product": lambda d: torch.sparse.mm(COO.to(d), FACTOR.to(d)),
    "sum with dense": lambda d: DENSE.to(d) + COO.to(d),
    "added to dense": lambda d: changed(
        DENSE.to(d), lambda x: x.add_(COO.to(d), alpha=0.5)
    ),
    "changed in place": lambda d: changed(COO.to(d), lambda x: x.mul_(2)),
    "zeroed": lambda d: changed(COO.to(d), lambda x: x.zero_()),
    "copied from the host": lambda d: changed(
        torch.sparse_coo_tensor((2, 3)).to(d), lambda x: x.copy_(COO)
    ),
    "transposed": lambda d: COO.to(d).t().unsqueeze(0),
    "softmax": lambda d: torch.sparse.softmax(COO.to(d).coalesce(), 1),
    "CSR": lambda d: CSR.to(d),
    "CSR made": lambda d: torch.sparse_csr_tensor(
        torch.tensor([0, 1, 2]).to(d),
        torch.tensor([0, 1]).to(d),
        torch.ones(2).to(d),
        (2, 2),
    ),
    "CSR from dense": lambda d: DENSE.to(d).to_sparse_csr(),
    "CSR to dense": lambda d: CSR.to(d).to_dense(),
    "CSR rows": lambda d: CSR.to(d).crow_indices(),
    "CSR product": lambda d: CSR.to(d) @ FACTOR.to(d),
    "CSR sum": lambda d: CSR.to(d) + CSR.to(d),
    "CSR changed in place": lambda d: changed(CSR.to(d), lambda x: x.mul_(2)),
    "CSR row": lambda d: CSR.to(d)[1],
    "CSC": lambda d: COO.coalesce().to_sparse_csc().to(d),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_device_has_what_the_cpu_has(name):
    want = FUNCTIONS[name]("cpu")
    got = FUNCTIONS[name]("spyre")
    assert got.device.type == "spyre"
    assert (got.layout, got.dtype, got.shape) == (want.layout, want.dtype, want.shape)
    assert torch.equal(dense(got), dense(want))


def test_what_the_cpu_computes_is_counted():
    x = COO.to("spyre")
    torch_spyre.reset_fallback_report()
    x._values(), x._indices(), x.clone(), x.cpu()
    assert torch_spyre.fallback_report() == {}
    x.coalesce()
    assert torch_spyre.fallback_report() == {"aten::_coalesce": 1}


@pytest.mark.parametrize(
    "mixed",
    [
        lambda: torch.sparse.mm(COO.to("spyre"), FACTOR),
        lambda: COO.to("spyre") + COO,
        lambda: DENSE + COO.to("spyre"),
        lambda: CSR.to("spyre") @ FACTOR,
        lambda: torch.sparse.mm(CSR.to("spyre"), FACTOR, "amax"),
    ],
)
def test_tensors_of_the_host_are_refused(mixed):
    with pytest.raises(RuntimeError, match="found spyre:0 and cpu"):
        mixed()


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_gradients_of_reduced_products(reduce):
    """The CPU's gradient reads which terms are the largest, and does not ask whether
    that is there.
    """

    def gradients(device):
        x = CSR.to(device).requires_grad_()
        factor = FACTOR.to(device).requires_grad_()
        result = torch.sparse.mm(x, factor, reduce)
        found = torch.autograd.grad((result * result).sum(), (x, factor))
        return [dense(t) for t in (result.detach(), *found)]

    torch_spyre.reset_fallback_report()
    for got, want in zip(gradients("spyre"), gradients("cpu"), strict=True):
        assert torch.equal(got, want)
    assert "aten::_sparse_mm_reduce_impl" in torch_spyre.fallback_report()


def test_a_buffer_moves_with_its_module():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", COO.bool().coalesce(), persistent=False)

        def forward(self, x):
            return x + self.mask.to_dense()

    module = Masked().to("spyre")
    assert module.mask.device.type == "spyre"
    assert torch.equal(module(DENSE.to("spyre")).cpu(), Masked()(DENSE))


def test_saved_and_loaded():
    file = io.BytesIO()
    torch.save(COO.to("spyre"), file)
    for place, device in ((None, "spyre"), ("cpu", "cpu")):
        file.seek(0)
        loaded = torch.load(file, map_location=place)
        assert loaded.device.type == device
        assert torch.equal(dense(loaded), dense(COO))


def test_printed():
    text = repr(COO.to("spyre"))
    assert "nnz=4" in text and "device='spyre:0'" in text


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, 0.1),
        lambda p: torch.optim.SparseAdam(list(p), 0.1),
        lambda p: torch.optim.Adagrad(p, 0.1),
    ],
    ids=["SGD", "SparseAdam", "Adagrad"],
)
def test_gradients_of_embeddings(make):
    def train(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        table = nn.Embedding(7, 3, sparse=True).to(device)
        optimizer = make(table.parameters())
        rows = torch.tensor([1, 2, 1]).to(device)
        for _ in range(3):
            optimizer.zero_grad()
            (table(rows) ** 2).sum().backward()
            assert table.weight.grad.is_sparse
            optimizer.step()
        return table.weight.detach().cpu()

    torch.testing.assert_close(train("spyre"), train("cpu"), rtol=1e-6, atol=1e-7)
