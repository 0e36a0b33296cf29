# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_distributed.py run: ``distributed_checks.py CHECK SIZE``.

The ranks are copies of a process that has imported what they need.
"""

import atexit
import gc
import importlib
import os
import signal
import sys
import tempfile
import time
import warnings
from contextlib import ExitStack
from datetime import timedelta

import torch
import torch.distributed as dist
from distributed_training import long_training, training
from interpreters import LOADED_LATE

Op = dist.ReduceOp


def values(rank, count=6, dtype=torch.float16):
    generator = torch.Generator().manual_seed(rank)
    return torch.randn(count, generator=generator).to(dtype)


def rounded(tensor):
    return tensor.to("spyre").cpu()


def rounded_f32(tensor):
    """fp32 values as a fp16 tensor of the device holds them."""
    return (
        torch.empty_like(tensor, dtype=torch.float16, device="spyre")
        .copy_(tensor)
        .cpu()
    )


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
    for source in (0, None):
        if rank == 0:
            dist.send(x, 1)
        elif rank == 1:
            mine.zero_()
            assert dist.recv(mine, source) == 0
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
    wide_values(rank, size)
    dist.barrier()
    try:
        dist.all_gather_into_tensor(torch.empty(3, device="spyre"), root)
    except (ValueError, RuntimeError):
        pass
    else:
        raise AssertionError("a wrong size was taken")


def wide_values(rank, size):
    """Values that the device holds and the host's fp16 and bf16 do not."""
    numbers = torch.tensor([1e6, 2.0**-30, 1 + 2.0**-9, -3e9]) * (rank + 1)
    for dtype in (torch.float16, torch.bfloat16):
        x = numbers.to("spyre").to(dtype)
        every = [
            (numbers / (rank + 1) * (r + 1)).to("spyre").to(dtype).float().cpu()
            for r in range(size)
        ]
        y = x.clone()
        dist.broadcast(y, 1)
        assert torch.equal(y.float().cpu(), every[1])
        parts = [torch.empty_like(x) for _ in range(size)]
        dist.all_gather(parts, x)
        assert all(
            torch.equal(p.float().cpu(), e) for p, e in zip(parts, every, strict=False)
        )
        swapped = torch.empty(size, 4, dtype=dtype, device="spyre")
        dist.all_to_all_single(swapped, x.expand(size, 4).contiguous())
        assert torch.equal(swapped.float().cpu(), torch.stack(every))
        dist.all_reduce(y := x.clone())
        total = every[0]
        for part in every[1:]:
            total = total + part
        assert torch.equal(y.float().cpu(), total.to("spyre").to(dtype).float().cpu())


def large_tensors(rank):
    """Tensors of more than one piece, in every way that they may lie."""
    count = (1 << 20) + 70

    def numbers(*sizes, dtype=torch.float32):
        generator = torch.Generator().manual_seed(rank)
        x = torch.randn(sizes, generator=generator)
        return (x if dtype.is_floating_point else 100 * x).to(dtype).to("spyre")

    yield numbers(count)
    yield numbers(count, dtype=torch.float16)
    yield numbers(count, dtype=torch.bfloat16)
    yield numbers(100, 7001, dtype=torch.float16)
    yield numbers(7001, 100).t()
    yield numbers(2 * count)[3 : count + 3]
    yield numbers(700, 1501)[:, 1:]
    yield numbers(count // 2, dtype=torch.int64)
    yield numbers(2 * count, dtype=torch.uint8)
    # The ranks store it differently.
    x = numbers(512, 1024)
    if rank:
        layout = numbers(1024, 512).t().clone().device_tensor_layout()
        x = x.to(device_layout=layout)
    yield x
    # Values that the host's fp16 does not hold.
    yield (numbers(count) * 2.0**30).to(torch.float16)


def bits(tensor):
    tensor = tensor.float() if tensor.dtype.is_floating_point else tensor
    return tensor.cpu()


def every_collective(rank, size):
    """The results of the collectives in which ranks reach each other's memory."""
    for x in large_tensors(rank):
        for op in (Op.SUM, Op.AVG, Op.MAX, Op.PREMUL_SUM):
            if op == Op.PREMUL_SUM:
                if not x.dtype.is_floating_point:
                    continue
                op = dist._make_nccl_premul_sum(0.3)
            y = x.clone()
            dist.all_reduce(y, op=op)
            yield bits(y)
        y = x.clone()
        dist.broadcast(y, size - 1)
        yield bits(y)
        like = {"dtype": x.dtype, "device": "spyre"}
        whole = torch.empty(size * x.shape[0], *x.shape[1:], **like)
        dist.all_gather_into_tensor(whole, x.contiguous())
        yield bits(whole)
        part = torch.empty(x.shape, **like)
        dist.reduce_scatter_tensor(part, whole)
        yield bits(part)
    # The ranks' parts of one tensor.
    whole = torch.full((size << 19,), float(rank), device="spyre")
    own = whole[rank << 19 : rank + 1 << 19]
    dist.all_gather_into_tensor(whole, own)
    yield bits(whole)
    dist.reduce_scatter_tensor(own, whole)
    yield bits(whole)


def may_read_processes():
    """Containers may forbid it: then all collectives go through gloo."""
    from torch_spyre import rank_memory

    number = torch.tensor([7])
    return rank_memory._can_read(os.getpid(), number.data_ptr(), 7)


def check_no_file():
    """This process has left no file in memory."""
    from torch_spyre import rank_memory

    assert not list(rank_memory.FOLDER.glob(f"spyreccl-{os.getpid()}-*"))


def shared(rank, size):
    """They give the bits that gloo does, and no rank leaves a file."""
    from torch_spyre import distributed

    found = list(every_collective(rank, size))
    assert dist.group.WORLD._memory is not None or not may_read_processes()
    dist.barrier()
    check_no_file()
    distributed.LEAST_SHARED = 1 << 60
    for number, (a, b) in enumerate(
        zip(found, every_collective(rank, size), strict=True)
    ):
        assert torch.equal(a, b), (number, a, b)
    total = sum(values(r, 1 << 19) for r in range(size))
    distributed.LEAST_SHARED = 1 << 20
    dist.all_reduce(x := values(rank, 1 << 19, torch.float32).to("spyre"))
    torch.testing.assert_close(x.cpu(), total.float(), rtol=0, atol=0.02)
    # The group of both devices moves tensors of the host, too.
    dist.all_reduce(x := torch.full((1 << 19,), rank + 1.0))
    assert (x == size * (size + 1) / 2).all()
    pair = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(two := torch.ones(1 << 19, device="spyre"), group=pair)
        assert (two.cpu() == 2).all()


def apart(rank, size, function="_find", result=None):
    """Ranks that do not find the file of the first one use gloo."""
    from torch_spyre import rank_memory

    if rank == size - 1:
        setattr(rank_memory, function, lambda *_: result)
    dist.all_reduce(x := torch.ones(1 << 19, device="spyre"))
    assert dist.group.WORLD._memory is None and (x.cpu() == size).all()
    check_no_file()


def forbidden(rank, size):
    """So do those that may not read each other's memory."""
    apart(rank, size, "_can_read", False)


def expect_errors(calls, seconds):
    """Each call raises within a time; the process lives on."""
    for call in calls:
        started = time.monotonic()
        try:
            call()
        except RuntimeError:
            assert time.monotonic() - started < seconds
        else:
            raise AssertionError("no error")
    assert (torch.ones(3, device="spyre") + 1).cpu().tolist() == [2, 2, 2]


def death(rank, size):
    """The last rank dies in a collective: the others get errors."""
    x = torch.ones(1 << 16, device="spyre")
    dist.all_reduce(x)
    if rank == size - 1:
        from torch_spyre.distributed import SpyreCCL

        def die(self, tensor):
            # Nothing of its part is sent: once begun, it could still arrive whole
            # and then the others rightly see no error.
            os._exit(0)

        SpyreCCL._gather = die
    large = torch.ones(1 << 19, device="spyre")
    parts = [torch.empty_like(x) for _ in range(size)]
    expect_errors(
        [
            lambda: dist.all_reduce(x),
            lambda: dist.all_reduce(large),
            lambda: dist.all_to_all(parts, parts),
            lambda: dist.broadcast(x, size - 1),
            lambda: dist.barrier(),
            lambda: dist.recv(x, size - 1),
        ],
        TIMEOUT + 10,
    )
    check_no_file()
    os._exit(0)


def death_between(rank, size):
    """The last rank dies in the middle of a large tensor: the others get errors."""
    x = torch.ones(1 << 22, device="spyre")
    dist.all_reduce(x)
    if rank == size - 1:
        # The others have told it by then where their values are.
        group = dist.group.WORLD
        if group._memory is None:
            group._gather = lambda *_: os._exit(0)
        else:
            group._memory.write = lambda *_: os._exit(0)
    expect_errors([lambda: dist.all_reduce(x)] * 2, TIMEOUT + 10)
    os._exit(0)


def hang(rank, size):
    """The last rank stops without dying: the others get errors in time."""
    x = torch.ones(64, device="spyre")
    dist.all_reduce(x)
    store = dist.distributed_c10d._get_default_store()
    if rank == size - 1:
        store.wait(["over"], timedelta(seconds=300))
        os._exit(0)
    parts = [torch.empty_like(x) for _ in range(size)]
    expect_errors(
        [lambda: dist.all_reduce(x), lambda: dist.all_to_all(parts, parts)],
        TIMEOUT + 10,
    )
    store.add("done", 1)
    while rank == 0 and store.add("done", 0) < size - 1:
        time.sleep(0.05)
    if rank == 0:
        store.set("over", "")
        time.sleep(1)
    os._exit(0)


#: Seconds; a loaded machine needs some for what works.
TIMEOUT = 120
CHECKS = {
    "collectives": collectives,
    "training": training,
    "death": death,
    "death_between": death_between,
    "shared": shared,
    "apart": apart,
    "forbidden": forbidden,
    "long_training": long_training,
    "hang": hang,
}


def start_rank(check, rank, size, output):
    """In a copy of this process, which becomes the rank; in this one, the copy's id."""
    process = os.fork()
    if process:
        return process
    for number in (1, 2):
        os.dup2(output.fileno(), number)
    # Whatever happens, it ends.
    signal.alarm(400)
    dist.init_process_group(
        "cpu:gloo,spyre:spyreccl",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=TIMEOUT),
    )
    CHECKS[check](rank, size)
    dist.destroy_process_group()
    if size > 2:
        # How a rank ends in full is tested by checks of two.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    sys.exit()


def run_ranks(check, size):
    """The ranks that failed, with the end of what they said."""
    failures = []
    with ExitStack() as stack:
        outputs = [
            stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(size)
        ]
        ranks = [start_rank(check, n, size, o) for n, o in enumerate(outputs)]
        for number, (rank, output) in enumerate(zip(ranks, outputs, strict=True)):
            status = os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1])
            if status:
                output.seek(0)
                said = output.read()[-3000:]
                failures.append(f"rank {number}, exit status {status}:\n{said}")
    return failures


if __name__ == "__main__":
    if sys.argv[1] == "hang":
        TIMEOUT = 8
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    # The ranks share what is loaded here.
    if "training" in sys.argv[1]:
        for name in ("torch_spyre.compile_backend", *LOADED_LATE):
            importlib.import_module(name)
    gc.freeze()
    sys.exit("\n".join(run_ranks(sys.argv[1], int(sys.argv[2]))) or None)
