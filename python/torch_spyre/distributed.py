# SPDX-License-Identifier: Apache-2.0
"""``spyreccl``: collectives between simulated cards, one process per card.

Tensors are staged on the host and moved by gloo, which also says when a rank is
lost. Floating reductions exchange fp32 values, add them in the order of the ranks
and round once, so that every rank has the same bits, whatever the number of
processes and their timing. Collectives run one after the other on a thread of the
group; ``async_op=True`` gives a work object to wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future as TorchFuture

BACKEND = "spyreccl"


class _Work(dist._Work):
    """A collective under way."""

    def __init__(self, future: Future, result: Any) -> None:
        super().__init__()
        self._future = future
        self._torch_future: TorchFuture = TorchFuture()

        def finish(done: Future) -> None:
            error = done.exception()
            if error is None:
                self._torch_future.set_result(result)
            else:
                self._torch_future.set_exception(error)

        future.add_done_callback(finish)

    def wait(self, timeout: timedelta | None = None) -> bool:
        seconds = timeout.total_seconds() if timeout else 0
        self._future.result(seconds if seconds > 0 else None)
        return True

    def is_completed(self) -> bool:
        return self._future.done()

    def is_success(self) -> bool:
        return self._future.done() and self._future.exception() is None

    def exception(self) -> BaseException | None:
        return self._future.exception() if self._future.done() else None

    def get_future(self) -> TorchFuture:
        return self._torch_future


def _staged(dtype: torch.dtype) -> torch.dtype:
    """What values of a dtype travel as: fp16 and bf16 hold less than DL16."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def _buffer(tensor: Tensor) -> Tensor:
    return torch.empty(tensor.shape, dtype=_staged(tensor.dtype))


def _host(tensor: Tensor) -> Tensor:
    return _buffer(tensor).copy_(tensor.detach())


_INTEGER: dict[Any, Callable[[Tensor, Tensor], Tensor]] = {
    dist.ReduceOp.BAND: torch.bitwise_and,
    dist.ReduceOp.BOR: torch.bitwise_or,
    dist.ReduceOp.BXOR: torch.bitwise_xor,
}
_ANY: dict[Any, Callable[[Tensor, Tensor], Tensor]] = {
    dist.ReduceOp.SUM: torch.add,
    dist.ReduceOp.AVG: torch.add,
    dist.ReduceOp.PREMUL_SUM: torch.add,
    dist.ReduceOp.PRODUCT: torch.mul,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.MAX: torch.maximum,
}


def _kind(op: Any) -> Any:
    return getattr(op, "op", op)


def _factor(op: Any) -> Any:
    """What PREMUL_SUM multiplies by; read from the operator's pickled state."""
    _, factor = op.__getstate__()
    return factor.cpu() if isinstance(factor, Tensor) else factor


def _reduce(parts: list[Tensor], op: Any) -> Tensor:
    """Reduces the ranks' values in their order; floating ones in fp32."""
    kind = _kind(op)
    dtype = parts[0].dtype
    function = _ANY.get(kind) or _INTEGER.get(kind)
    if function is None or (kind in _INTEGER and dtype.is_floating_point):
        raise ValueError(f"{BACKEND} cannot reduce {dtype} by {op}")
    if dtype == torch.bool and kind in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT):
        function = torch.logical_or if kind == dist.ReduceOp.SUM else torch.logical_and
    wide = [p.float() if dtype.is_floating_point else p for p in parts]
    if kind == dist.ReduceOp.PREMUL_SUM:
        factor = _factor(op)
        wide = [p * factor for p in wide]
    result = wide[0]
    for part in wide[1:]:
        result = function(result, part)
    if kind == dist.ReduceOp.AVG:
        if not dtype.is_floating_point:
            return result.div(len(parts), rounding_mode="trunc").to(dtype)
        result = result / len(parts)
    return result


class SpyreCCL(dist.ProcessGroup):
    """The process group of one set of ranks. Tensors may lie anywhere on a card."""

    def __init__(
        self, store: Any, rank: int, size: int, timeout: timedelta | None = None
    ) -> None:
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        self._group_name = self._description = ""
        self._gloo = dist.ProcessGroupGloo(
            dist.PrefixStore("spyreccl", store),
            rank,
            size,
            timeout or timedelta(minutes=30),
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=BACKEND)
        # Point-to-point calls do not wait for each other.
        self._messages = ThreadPoolExecutor(8, thread_name_prefix=f"{BACKEND}-p2p")

    def getBackendName(self) -> str:
        return BACKEND

    def name(self) -> str:
        return BACKEND

    def size(self) -> int:
        return self._size

    def rank(self) -> int:
        return self._rank

    # c10d asks a group written in Python for what it told it.
    def setGroupName(self, name: str) -> None:
        self._group_name = name

    def getGroupName(self) -> str:
        return self._group_name

    def setGroupDesc(self, description: str) -> None:
        self._description = description

    def getGroupDesc(self) -> str:
        return self._description

    # --- on the group's thread ---------------------------------------------------

    def _submit(
        self, work: Callable[[], None], result: Any, messages: bool = False
    ) -> _Work:
        pool = self._messages if messages else self._thread

        def run() -> None:
            with torch.no_grad():
                work()

        return _Work(pool.submit(run), result)

    def _gather(self, tensor: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(tensor) for _ in range(self._size)]
        if tensor.numel():
            self._gloo.allgather([parts], [tensor]).wait()
        else:
            self._gloo.barrier().wait()
        return parts

    def _exchange(self, outgoing: list[Tensor], incoming: list[Tensor]) -> None:
        """Sends a tensor to every rank and receives one from each."""
        waits = []
        for step in range(self._size):
            to = (self._rank + step) % self._size
            source = (self._rank - step) % self._size
            if to == self._rank:
                incoming[to].copy_(outgoing[to])
                continue
            waits.append(self._gloo.send([outgoing[to]], to, 0))
            waits.append(self._gloo.recv([incoming[source]], source, 0))
        for wait in waits:
            wait.wait()

    # --- reductions --------------------------------------------------------------

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> _Work:
        op = opts.reduceOp if opts is not None else dist.ReduceOp.SUM

        def work() -> None:
            for tensor in tensors:
                tensor.copy_(_reduce(self._gather(_host(tensor)), op))

        return self._submit(work, tensors)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: list[Tensor], opts: Any) -> _Work:
        def work() -> None:
            for tensor in tensors:
                parts = self._gather(_host(tensor))
                if self._rank == opts.rootRank:
                    tensor.copy_(_reduce(parts, opts.reduceOp))

        return self._submit(work, tensors)

    def _scatter_sums(self, outputs: list[Tensor], inputs: list[list[Tensor]], op: Any):
        for output, chunks in zip(outputs, inputs, strict=True):
            host = [_host(c) for c in chunks]
            parts = [torch.empty_like(host[self._rank]) for _ in range(self._size)]
            self._exchange(host, parts)
            output.copy_(_reduce(parts, op).view(output.shape))

    def reduce_scatter(
        self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any
    ) -> _Work:
        def work() -> None:
            self._scatter_sums(outputs, inputs, opts.reduceOp)

        return self._submit(work, outputs)

    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any) -> _Work:
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    def reduce_scatter_tensor_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any
    ) -> _Work:
        def work() -> None:
            chunks = [list(_host(i).view(-1).chunk(self._size)) for i in inputs]
            self._scatter_sums(outputs, chunks, opts.reduceOp)

        for output, tensor in zip(outputs, inputs, strict=True):
            self._check_size(tensor, output.numel() * self._size)
        return self._submit(work, outputs)

    # --- movement ----------------------------------------------------------------

    def _check_size(self, tensor: Tensor, count: int) -> None:
        if tensor.numel() != count:
            raise ValueError(
                f"expected a tensor of {count} elements for {self._size} ranks, "
                f"found {tensor.numel()}"
            )

    def broadcast(self, tensors: list[Tensor], opts: Any) -> _Work:
        def work() -> None:
            for tensor in tensors:
                host = _host(tensor)
                if host.numel():
                    self._gloo.broadcast([host], opts).wait()
                if self._rank != opts.rootRank:
                    tensor.copy_(host)

        return self._submit(work, tensors)

    def allgather(
        self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None
    ) -> _Work:
        def work() -> None:
            for targets, tensor in zip(outputs, inputs, strict=True):
                host = _host(tensor)
                if all(t.numel() == host.numel() for t in targets):
                    parts = self._gather(host)
                else:
                    parts = [_buffer(t) for t in targets]
                    self._exchange([host] * self._size, parts)
                for target, part in zip(targets, parts, strict=True):
                    target.copy_(part.view(target.shape))

        return self._submit(work, outputs)

    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> _Work:
        return self.allgather_into_tensor_coalesced([output], [input], opts)

    def allgather_into_tensor_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> _Work:
        def work() -> None:
            for output, tensor in zip(outputs, inputs, strict=True):
                parts = self._gather(_host(tensor).view(-1))
                output.copy_(torch.cat(parts).view(output.shape))

        for output, tensor in zip(outputs, inputs, strict=True):
            self._check_size(output, tensor.numel() * self._size)
        return self._submit(work, outputs)

    def gather(
        self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any
    ) -> _Work:
        def work() -> None:
            for i, tensor in enumerate(inputs):
                parts = self._gather(_host(tensor))
                if self._rank == opts.rootRank:
                    for target, part in zip(outputs[i], parts, strict=True):
                        target.copy_(part)

        return self._submit(work, outputs)

    def scatter(
        self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any
    ) -> _Work:
        def work() -> None:
            for i, output in enumerate(outputs):
                host = _buffer(output)
                chunks = []
                if self._rank == opts.rootRank:
                    chunks = [[_host(t) for t in inputs[i]]]
                self._gloo.scatter([host], chunks, opts).wait()
                output.copy_(host)

        return self._submit(work, outputs)

    def alltoall(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> _Work:
        def work() -> None:
            parts = [_buffer(o) for o in outputs]
            self._exchange([_host(i) for i in inputs], parts)
            for output, part in zip(outputs, parts, strict=True):
                output.copy_(part)

        return self._submit(work, outputs)

    def alltoall_base(
        self,
        output: Tensor,
        input: Tensor,
        output_splits: list[int],
        input_splits: list[int],
        opts: Any = None,
    ) -> _Work:
        def rows(tensor: Tensor, splits: list[int]) -> list[int]:
            if splits:
                if sum(splits) != tensor.shape[0] or len(splits) != self._size:
                    raise ValueError(
                        f"expected {self._size} splits, one per rank, that add up to "
                        f"the tensor's {tensor.shape[0]} rows, found {splits}"
                    )
                return list(splits)
            if tensor.shape[0] % self._size:
                raise ValueError(
                    f"{tensor.shape[0]} rows cannot be divided evenly among "
                    f"{self._size} ranks: pass split sizes"
                )
            return [tensor.shape[0] // self._size] * self._size

        sent, received = rows(input, input_splits), rows(output, output_splits)

        def work() -> None:
            parts = list(_buffer(output).split(received))
            chunks = [c.contiguous() for c in _host(input).split(sent)]
            self._exchange(chunks, parts)
            output.copy_(torch.cat(parts))

        return self._submit(work, output)

    def barrier(self, opts: Any = None) -> _Work:
        def work() -> None:
            torch.spyre.synchronize()
            self._gloo.barrier().wait()

        return self._submit(work, None)

    def send(self, tensors: list[Tensor], target: int, tag: int) -> _Work:
        host = [_host(t) for t in tensors]

        def work() -> None:
            self._gloo.send(host, target, tag + 1).wait()

        return self._submit(work, tensors, messages=True)

    def recv(self, tensors: list[Tensor], source: int, tag: int) -> _Work:
        def work() -> None:
            for tensor in tensors:
                host = _buffer(tensor)
                self._gloo.recv([host], source, tag + 1).wait()
                tensor.copy_(host)

        return self._submit(work, tensors, messages=True)

    def recv_anysource(self, tensors: list[Tensor], tag: int) -> _Work:
        def work() -> None:
            for tensor in tensors:
                host = _buffer(tensor)
                self._gloo.recv_anysource([host], tag + 1).wait()
                tensor.copy_(host)

        return self._submit(work, tensors, messages=True)

    # Names that torch.distributed and c10d's C++ callers use for the same.
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    allgather_coalesced = allgather
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base
