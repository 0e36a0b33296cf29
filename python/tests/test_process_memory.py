# SPDX-License-Identifier: Apache-2.0
"""What ranks do with each other's memory, one by one."""

import os

import pytest
import torch
from torch_spyre import _C

OWN = os.getpid()


@pytest.fixture(scope="module", autouse=True)
def allowed():
    """Containers may forbid the system call."""
    value = torch.zeros(1)
    try:
        _C.read_process(OWN, value.data_ptr(), torch.empty(1), 0)
    except RuntimeError as error:
        pytest.skip(str(error))


def test_stored_elements_are_the_tensor():
    """They live as long as anybody has them, and change with the tensor."""
    x = torch.tensor([1.0, 2.0, 3.0]).to("spyre")
    elements = _C.stored_elements(x, are_written=True)
    assert elements.tolist() == [1, 2, 3]
    elements[1] = 5
    assert x.cpu().tolist() == [1, 5, 3]
    x.add_(1)
    torch.spyre.synchronize()
    assert elements.tolist() == [2, 6, 4]
    del x
    torch.spyre.empty_cache()
    assert elements.tolist() == [2, 6, 4]


def test_stored_elements_of_a_part():
    """A dense part of a storage; not one with gaps."""
    x = torch.arange(130.0).to("spyre")
    assert _C.stored_elements(x[65:128], are_written=False).tolist() == [
        *range(65, 128)
    ]
    for other in (x[::2], x[:0], torch.arange(3, device="spyre")):
        with pytest.raises(RuntimeError, match="no floats that follow each other"):
            _C.stored_elements(other, are_written=False)


def test_a_clone_that_is_written_keeps_the_original():
    x = torch.ones(200, dtype=torch.float16, device="spyre")
    y = x.clone()
    _C.stored_elements(y, are_written=True).zero_()
    assert (x == 1).all() and (y == 0).all()


@pytest.mark.parametrize("count", [0, 1, 1000, 1 << 20])
def test_moves(count):
    source = torch.randn(count)
    copy = torch.zeros(count)
    _C.read_process(OWN, source.data_ptr(), copy, 0)
    assert torch.equal(copy, source)
    _C.write_process(OWN, copy.data_ptr(), -source, 0)
    assert torch.equal(copy, -source)


def test_memory_that_is_not_there():
    """Not even in part: a page that is mapped, before one that is not."""
    import mmap

    with mmap.mmap(-1, 2 * mmap.PAGESIZE) as memory:
        pages = torch.frombuffer(memory, dtype=torch.uint8)
        first = pages.data_ptr()
        del pages
    values = torch.zeros(mmap.PAGESIZE, dtype=torch.uint8)
    for move, name in ((_C.read_process, "read"), (_C.write_process, "write")):
        with pytest.raises(RuntimeError, match=f"cannot {name} the memory of process"):
            move(OWN, first, values, 0)


def test_a_process_that_has_ended():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    values = torch.zeros(4)
    with pytest.raises(RuntimeError, match=f"process {child}: No such process"):
        _C.read_process(child, values.data_ptr(), values, 0)


def test_values_that_are_not_dense():
    for values in (torch.zeros(4, 4).t(), torch.zeros(4, device="spyre")):
        with pytest.raises(RuntimeError, match="expected a dense CPU tensor"):
            _C.read_process(OWN, 0, values, 0)
