# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_distributed.py run: ``distributed_checks.py CHECK RANK SIZE``."""

import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

Op = dist.ReduceOp


def values(rank, count=6, dtype=torch.float16):
    generator = torch.Generator().manual_seed(rank)
    return torch.randn(count, generator=generator).to(dtype)


def rounded(tensor):
    return tensor.to("spyre").cpu()


def ordered_sum(size, count=6):
    total = rounded(values(0, count)).float()
    for rank in range(1, size):
        total = total + rounded(values(rank, count)).float()
    return total


def collectives(rank, size):
    x = values(rank).to("spyre")
    y = x.clone()
    dist.all_reduce(y)
    assert torch.equal(y.cpu(), rounded_f32(ordered_sum(size)))
    every = [torch.empty_like(y) for _ in range(size)]
    dist.all_gather(every, y)
    assert all(torch.equal(e.cpu(), y.cpu()) for e in every)
    for op, expected in [
        (Op.AVG, ordered_sum(size) / size),
        (Op.MAX, torch.stack([rounded(values(r)) for r in range(size)]).amax(0)),
        (Op.MIN, torch.stack([rounded(values(r)) for r in range(size)]).amin(0)),
    ]:
        y = x.clone()
        dist.all_reduce(y, op=op)
        assert torch.equal(y.cpu(), rounded_f32(expected.float())), op
    one = torch.full((3,), rank + 1.0, device="spyre")
    dist.all_reduce(one, op=dist._make_nccl_premul_sum(0.5))
    assert one.cpu().tolist() == [size * (size + 1) / 4] * 3
    bits = torch.tensor([1 << rank], device="spyre")
    dist.all_reduce(bits, op=Op.BOR)
    assert bits.item() == (1 << size) - 1
    product = torch.tensor([rank + 1], device="spyre")
    dist.all_reduce(product, op=Op.PRODUCT)
    assert product.item() == torch.arange(1, size + 1).prod().item()

    gathered = torch.empty(size * 6, dtype=torch.float16, device="spyre")
    dist.all_gather_into_tensor(gathered, x)
    expected = torch.cat([rounded(values(r)) for r in range(size)])
    assert torch.equal(gathered.cpu(), expected)
    part = torch.empty(6, dtype=torch.float16, device="spyre")
    dist.reduce_scatter_tensor(part, gathered)
    assert torch.equal(part.cpu(), rounded_f32(expected[rank * 6 :][:6].float() * size))
    dist.reduce_scatter(part, [gathered[i * 6 :][:6] for i in range(size)])
    assert torch.equal(part.cpu(), rounded_f32(expected[rank * 6 :][:6].float() * size))
    root = torch.full((5,), float(rank), device="spyre")
    dist.broadcast(root, 1)
    assert root.cpu().tolist() == [1.0] * 5
    dist.reduce(total := torch.ones(2, device="spyre"), 0)
    assert total.cpu().tolist() == ([float(size)] if rank == 0 else [1.0]) * 2
    sent = torch.arange(size * 2, device="spyre").view(-1, 1) + 100 * rank
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    assert received.cpu().flatten().tolist() == [
        100 * r + 2 * rank + i for r in range(size) for i in range(2)
    ]
    lists = [torch.empty(2, 1, dtype=torch.int64, device="spyre") for _ in range(size)]
    dist.all_to_all(lists, list(sent.split(2)))
    assert torch.equal(torch.cat(lists).cpu(), received.cpu())
    targets = [torch.empty_like(x) for _ in range(size)] if rank == 0 else None
    dist.gather(x, targets, 0)
    if rank == 0:
        assert torch.equal(torch.cat(targets).cpu(), expected)
    mine = torch.empty_like(x)
    dist.scatter(mine, targets, 0)
    assert torch.equal(mine.cpu(), x.cpu())
    if rank == 0:
        dist.send(x, 1)
    elif rank == 1:
        dist.recv(mine, 0)
        assert torch.equal(mine.cpu(), rounded(values(0)))
    work = dist.all_reduce(x.t(), async_op=True)
    work.wait()
    assert work.is_completed() and work.is_success()
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(size)]
    pair = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(two := torch.ones(2, device="spyre"), group=pair)
        assert two.cpu().tolist() == [2.0, 2.0]
    dist.barrier()
    try:
        dist.all_gather_into_tensor(torch.empty(3, device="spyre"), root)
    except (ValueError, RuntimeError):
        pass
    else:
        raise AssertionError("a wrong size was taken")


def rounded_f32(tensor):
    """fp32 values as a fp16 tensor of the device holds them."""
    return (
        torch.empty_like(tensor, dtype=torch.float16, device="spyre")
        .copy_(tensor)
        .cpu()
    )


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))


def train(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(x).pow(2).mean().backward()
    optimizer.step()


def training(rank, size):
    x = torch.randn(4 * size, 8, generator=torch.Generator().manual_seed(1))
    reference = make_model()
    train(reference, x)
    wanted = [p.detach() for p in reference.parameters()]
    mesh = init_device_mesh("spyre", (size,))
    own = x[4 * rank :][:4].to("spyre")

    parallel = nn.parallel.DistributedDataParallel(make_model().to("spyre"))
    train(parallel, own)
    check([p.detach() for p in parallel.parameters()], wanted)

    sharded = make_model().to("spyre")
    fully_shard(sharded, mesh=mesh)
    train(sharded, own)
    check([p.full_tensor() for p in sharded.parameters()], wanted)

    split = make_model().to("spyre")
    parallelize_module(split, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    train(split, x.to("spyre"))
    check(
        [
            p.full_tensor() if hasattr(p, "full_tensor") else p
            for p in split.parameters()
        ],
        wanted,
    )

    name = dist.group.WORLD.group_name
    compiled = torch.compile(
        lambda t: funcol.all_reduce(t * 2, "sum", name) + 1, backend="spyre"
    )
    ones = torch.full((3, 70), float(rank), device="spyre")
    assert (compiled(ones).cpu() == size * (size - 1) + 1).all()


def check(actual, expected):
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a.detach().cpu(), e, rtol=2**-20, atol=2**-22)


def death(rank, size):
    """The last rank goes before the collective: the others get an error."""
    x = torch.ones(3, device="spyre")
    dist.all_reduce(x)
    if rank == size - 1:
        os._exit(0)
    try:
        dist.all_reduce(x)
    except RuntimeError:
        os._exit(0)
    os._exit(1)


if __name__ == "__main__":
    check_name, rank, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    dist.init_process_group(
        "cpu:gloo,spyre:spyreccl",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=120),
    )
    {"collectives": collectives, "training": training, "death": death}[check_name](
        rank, size
    )
    dist.destroy_process_group()
