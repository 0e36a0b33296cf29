# SPDX-License-Identifier: Apache-2.0
"""Indices beyond a tensor, in programs for many sizes: an error at each size."""

import pytest
import torch
from numerics import assert_exact

DEVICE = "spyre"
#: Of lines, or of rows of 70, and an index.
SELECT = {
    "gather": lambda x, i: x.gather(0, i),
    "index": lambda x, i: x[i],
    "index of rows": lambda x, i: (x[:, None] * x.new_ones(70))[i],
    "two indices": lambda x, i: (x[:, None] * x.new_ones(70))[i, i],
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x[:, None] + x[:3]),
    "joined": lambda x, i: torch.cat((x, x[:1] * 2))[i],
    "scatter": lambda x, i: x.scatter(0, i, 7.0),
    "index_add": lambda x, i: x.index_add(0, i, x.new_ones(1)),
    "index_put": lambda x, i: x.index_put((i,), x.new_ones(1)),
}


def line(size):
    return torch.arange(size) + 100.0


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("name", SELECT)
def test_indices_beyond_the_end(name, is_compiled):
    function, index = SELECT[name], torch.tensor([5])
    run = function
    if is_compiled:
        run = torch.compile(function, backend=DEVICE, dynamic=True)
    for size in (20, 9, 11, 7):
        found = run(line(size).to(DEVICE), index.to(DEVICE))
        assert_exact(found.cpu(), function(line(size), index), f"{size}")
    with pytest.raises(RuntimeError, match="is outside its range"):
        run(line(3).to(DEVICE), index.to(DEVICE)).cpu()
