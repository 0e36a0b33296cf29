# SPDX-License-Identifier: Apache-2.0
"""A rank of a client: ``client_ranks.py RANK FOLDER`` (test_dropin_spyre_inference.py).

Run with TORCH_DEVICE_BACKEND_AUTOLOAD=0, as the client's workers are.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

SIZE = 2
HALF = torch.float16


def numbers(rank: int, count: int) -> torch.Tensor:
    """Whole numbers, whose sums are exact."""
    return ((torch.arange(count) + 3 * rank) % 50).to(HALF)


def collectives(rank: int) -> None:
    sizes = [100, 37]
    # Sizes that differ are padded to 64 for the list form.
    padded = -(-max(sizes) // 64) * 64
    own = torch.zeros(padded, dtype=HALF)
    own[: sizes[rank]] = numbers(rank, sizes[rank])
    every = [torch.empty(padded, dtype=HALF, device="spyre") for _ in range(SIZE)]
    dist.all_gather(every, own.to("spyre"))
    for other, tensor in enumerate(every):
        got = tensor[: sizes[other]].cpu()
        assert torch.equal(got, numbers(other, sizes[other])), other

    x = numbers(rank, 65).to("spyre")
    dist.all_reduce(x)
    assert torch.equal(x.cpu(), numbers(0, 65) + numbers(1, 65))

    x = numbers(rank, 65).to("spyre")
    dist.broadcast(x, src=1)
    assert torch.equal(x.cpu(), numbers(1, 65))

    x = numbers(rank, 65).to("spyre")
    if rank == 0:
        dist.send(x, dst=1)
    else:
        dist.recv(x, src=0)
    assert torch.equal(x.cpu(), numbers(0, 65))

    dist.barrier()

    x = numbers(rank, 64).to("spyre")
    parts = [torch.empty_like(x) for _ in range(SIZE)] if rank == 0 else None
    dist.gather(x, parts, dst=0)
    for other, part in enumerate(parts or []):
        assert torch.equal(part.cpu(), numbers(other, 64))

    whole = torch.empty(2 * 70, dtype=HALF, device="spyre")
    dist.all_gather_into_tensor(whole, numbers(rank, 70).to("spyre"))
    assert torch.equal(whole.cpu(), torch.cat([numbers(0, 70), numbers(1, 70)]))

    part = torch.empty(70, dtype=HALF, device="spyre")
    dist.reduce_scatter_tensor(part, numbers(rank, 140).to("spyre"))
    total = numbers(0, 140) + numbers(1, 140)
    assert torch.equal(part.cpu(), total[70 * rank :][:70])

    # Host tensors of the same group go through gloo.
    x = torch.full((3,), rank + 1)
    dist.all_reduce(x)
    assert x.tolist() == [3, 3, 3]


def tensor_parallel(rank: int) -> None:
    """hf-adapters' way: the linear layers in parts, the head whole on each rank."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    torch.manual_seed(5)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.Linear(64, 256, bias=False)
            self.down = nn.Linear(256, 64, bias=False)
            self.head = nn.Linear(64, 96, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(x + self.down(torch.relu(self.up(x))))

    model = Model()
    x = torch.randn(3, 64)
    expected = model(x)
    mesh = init_device_mesh("spyre", (SIZE,))
    model = model.to(HALF).to("spyre")
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    model = parallelize_module(model, mesh, plan)
    with torch.no_grad():
        result = model(x.to(HALF).to("spyre")).cpu().float()
    torch.testing.assert_close(result, expected, atol=5e-3, rtol=5e-3)


def main() -> None:
    rank, folder = int(sys.argv[1]), sys.argv[2]
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(SIZE),
        LOCAL_RANK=str(rank),
        LOCAL_WORLD_SIZE=str(SIZE),
        AIU_WORLD_SIZE=str(SIZE),
    )
    torch.set_num_threads(1)
    import torch_spyre

    torch_spyre._autoload()
    torch.spyre.set_device(rank)
    dist.init_process_group(
        "cpu:gloo,spyre:spyreccl",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=SIZE,
    )
    assert torch.empty(1, device="spyre").device.index == rank
    collectives(rank)
    tensor_parallel(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
