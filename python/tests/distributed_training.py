# SPDX-License-Identifier: Apache-2.0
"""What each rank of distributed_checks.py runs to train."""

import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))


def train(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(x).pow(2).mean().backward()
    optimizer.step()


def train_data_parallel(device, x):
    model = nn.parallel.DistributedDataParallel(make_model().to(device))
    train(model, x.to(device))
    return [p.detach().cpu() for p in model.parameters()]


def train_sharded(device, x):
    model = make_model().to(device)
    fully_shard(model, mesh=init_device_mesh(device, (dist.get_world_size(),)))
    train(model, x.to(device))
    return [p.full_tensor().detach().cpu() for p in model.parameters()]


def train_tensor_parallel(device, x):
    model = make_model().to(device)
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    train(model, x.to(device))
    full = [
        p.full_tensor() if hasattr(p, "full_tensor") else p for p in model.parameters()
    ]
    return [p.detach().cpu() for p in full]


def synchronized_norm(rank, size, dtype):
    """As one batch norm of all ranks' rows, of which each has another number."""
    counts = list(range(size))  # the first rank has none
    draw = torch.Generator().manual_seed(2)
    x, slope = (torch.randn(sum(counts), 5, 7, generator=draw) for _ in "xy")
    x = x.to(dtype).float() + 3
    results = []
    for is_whole in (True, False):
        norm = nn.BatchNorm1d(5, momentum=0.3)
        with torch.no_grad():
            norm.weight.copy_(torch.arange(1, 6) / 4)
            norm.bias.copy_(torch.arange(5) / 8)
        rows, weights = x, slope
        if not is_whole:
            norm = nn.SyncBatchNorm.convert_sync_batchnorm(norm).to("spyre")
            rows, weights = (
                t.split(counts)[rank].to("spyre", dtype) for t in (x, slope)
            )
        rows = rows.detach().requires_grad_()
        y = norm(rows)
        (y * weights).sum().backward()
        gradients = [
            torch.zeros_like(p) if p.grad is None else p.grad for p in norm.parameters()
        ]
        # Nor has a rank without rows a gradient of them.
        own = [y, rows.grad] if counts[rank] else [y]
        if is_whole:
            own = [t.split(counts)[rank] for t in own]
        else:
            for gradient in gradients:
                dist.all_reduce(gradient)
        found = [*own, norm.running_mean, norm.running_var, *gradients]
        results.append([t.detach().cpu().float() for t in found])
    tolerance = 2**-16 if dtype == torch.float32 else 2**-6
    for expected, actual in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def checkpoints(rank, size):
    """Saved from shards in the background, and read into others."""
    path = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(path)

    def sharded(seed):
        torch.manual_seed(seed)
        model = make_model().to("spyre")
        fully_shard(model, mesh=init_device_mesh("spyre", (size,)))
        return model

    model, other = sharded(0), sharded(1)
    checkpoint.async_save(get_model_state_dict(model), checkpoint_id=path[0]).result()
    state = get_model_state_dict(other)
    checkpoint.load(state, checkpoint_id=path[0])
    set_model_state_dict(other, state)
    for a, e in zip(other.parameters(), model.parameters(), strict=True):
        assert torch.equal(a.to_local().cpu(), e.to_local().cpu())
    # One rank knows the values.
    whole = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    full = {n: torch.full_like(p, 0.5).full_tensor() for n, p in state.items()}
    set_model_state_dict(other, full if rank == 0 else {}, options=whole)
    for parameter in other.parameters():
        assert (parameter.to_local().cpu() == 0.5).all()
    dist.barrier()
    if rank == 0:
        shutil.rmtree(path[0])


def training(rank, size):
    """The same steps of the same ranks on the device and on gloo in fp32."""
    x = torch.randn(4 * size, 8, generator=torch.Generator().manual_seed(1))
    own = x[4 * rank :][:4]
    for step, data in (
        (train_data_parallel, own),
        (train_sharded, own),
        (train_tensor_parallel, x),
    ):
        check(step("spyre", data), step("cpu", data), step.__name__)
    half(own, size)
    for dtype in (torch.float32, torch.float16):
        synchronized_norm(rank, size, dtype)
    checkpoints(rank, size)

    name = dist.group.WORLD.group_name
    mesh = init_device_mesh("spyre", (size,))

    def collectives_of(t):
        summed = funcol.all_reduce(t * 2, "sum", name)
        gathered = funcol.all_gather_tensor(summed + 1, 0, name)
        return funcol.reduce_scatter_tensor(gathered, "sum", 0, mesh) * 0.5

    ones = torch.full((3, 70), float(rank), device="spyre")
    expected = (size * (size - 1) + 1) * size * 0.5
    assert (collectives_of(ones).cpu() == expected).all()
    compiled = torch.compile(collectives_of, backend="spyre", fullgraph=True)
    assert (compiled(ones).cpu() == expected).all()


STEPS = 200


def train_long(model, batches, device):
    """Losses of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for x in batches:
        optimizer.zero_grad()
        x = x.to(device)
        loss = (model(x) - x.roll(1, -1)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def long_training(rank, size):
    """A model sharded over all ranks learns as one rank with all of the data does."""
    generator = torch.Generator().manual_seed(2)
    batches = torch.randn(STEPS, 4 * size, 8, generator=generator)
    sharded = make_model().to("spyre")
    mesh = init_device_mesh("spyre", (size,))
    for layer in (sharded[0], sharded[2], sharded):
        fully_shard(layer, mesh=mesh)
    losses = train_long(sharded, batches[:, 4 * rank :][:, :4], "spyre")
    dist.all_reduce(losses, op=dist.ReduceOp.AVG)
    # One rank is enough, and the others wait: four would be in each other's way.
    alone = torch.empty_like(losses)
    if rank == 0:
        alone = train_long(make_model().to("spyre"), batches, "spyre")
    dist.broadcast(alone, 0)
    found, alone = losses.cpu(), alone.cpu()
    # Sums in another order differ by some units of 2^-24, which Adam's division by
    # the root of the squares passes on; the losses fall to a fiftieth.
    torch.testing.assert_close(found, alone, rtol=1e-4, atol=0)
    assert alone[-20:].mean() < 0.05 * alone[:5].mean(), alone


def half(x, size):
    """Data-parallel in fp16: as exact as rounding after every operator allows."""
    from numerics import device_value, oracle, rms, round_dl16

    wanted = train_data_parallel("cpu", x.half().to("spyre").cpu().float())
    model = nn.parallel.DistributedDataParallel(make_model().half().to("spyre"))
    train(model, x.half().to("spyre"))

    def by_hand():
        rounded = make_model().double()
        for p in rounded.parameters():
            p.data = device_value(p.data.half())
        rounded(device_value(x.half())).pow(2).mean().backward()
        return [(p.detach(), p.grad) for p in rounded.parameters()]

    errors, allowed = [], []
    for (start, gradient), p, w in zip(
        oracle(by_hand), model.parameters(), wanted, strict=True
    ):
        dist.all_reduce(gradient)
        expected = round_dl16(start - 0.1 * round_dl16(gradient / size))
        errors.append((p.detach().cpu().double() - w).flatten())
        allowed.append((expected - w).flatten())
    found, bound = rms(torch.cat(errors)), 2 * rms(torch.cat(allowed))
    assert found <= bound, (found, bound)


def check(actual, expected, what):
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(
            a, e, rtol=2**-20, atol=2**-22, msg=lambda m: f"{what}: {m}"
        )
