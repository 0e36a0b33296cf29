# SPDX-License-Identifier: Apache-2.0
"""``spyreccl``: collectives between simulated cards, one process per card.

Tensors are staged on the host and moved by gloo, which also says when a rank is
lost. The ranks of one machine read and write large ones in each other's memory, as the
device stores them where all ranks store them alike. Floating reductions add fp32
values in the order of the ranks and round once, so that every rank has the same bits,
whatever the number of processes and their timing. Collectives run one after the other
on a thread of the group; ``async_op=True`` gives a work object to wait for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future as TorchFuture

from torch_spyre.rank_memory import RankMemory
from torch_spyre.reductions import Elements, buffer, kind_of, on_host, reduce

BACKEND = "spyreccl"
#: Bytes of a tensor from which on ranks of one machine reach into each other's memory.
LEAST_SHARED = 1 << 20
#: Of other ranks' elements that are reduced at once: they stay in the second cache.
BLOCK_BYTES = 1 << 18


class _Work(dist._Work):
    """A collective under way."""

    def __init__(
        self, future: Future, result: Any, sources: Sequence[int] = ()
    ) -> None:
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
        self._sources = sources

    def _source_rank(self) -> int:
        self.wait()
        return self._sources[-1] if self._sources else super()._source_rank()

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


class SpyreCCL(dist.ProcessGroup):
    """The process group of one set of ranks. Tensors may lie anywhere on a card."""

    def __init__(
        self, store: Any, rank: int, size: int, timeout: timedelta | None = None
    ) -> None:
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        self._group_name = self._description = ""
        self._timeout = timeout or timedelta(minutes=30)
        self._store = dist.PrefixStore("spyreccl", store)
        self._gloo = dist.ProcessGroupGloo(self._store, rank, size, self._timeout)
        #: The memory of all ranks; None before the first use, or out of reach.
        self._memory: RankMemory | None = None
        self._knows_memory = False
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

    @property
    def _device_types(self) -> list[torch.device]:
        """Of the tensors that it takes: what c10d, and checkpoints, ask."""
        return [torch.device("cpu"), torch.device("spyre")]

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
        self,
        work: Callable[[], None],
        result: Any,
        messages: bool = False,
        sources: Sequence[int] = (),
    ) -> _Work:
        """``sources``: whose messages it has received, once done."""
        pool = self._messages if messages else self._thread

        def run() -> None:
            with torch.no_grad():
                work()

        return _Work(pool.submit(run), result, sources)

    def _gather(self, tensor: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(tensor) for _ in range(self._size)]
        if tensor.numel():
            self._gloo.allgather([parts], [tensor]).wait()
        else:
            self._gloo.barrier().wait()
        return parts

    # --- in each other's memory --------------------------------------------------

    def _shared(self, tensor: Tensor) -> RankMemory | None:
        """Where a tensor that is as large on all ranks is moved; None: through gloo."""
        if self._size == 1 or tensor.nbytes < LEAST_SHARED:
            return None
        if not self._knows_memory:
            self._memory = RankMemory.open(
                self._store, self._gloo, self._rank, self._size, self._timeout
            )
            self._knows_memory = True
        return self._memory

    def _are_alike(self, *kinds: tuple[int, str] | None) -> bool:
        """Whether all ranks have the same kinds, and none is None."""
        digest = b"\0" * 8
        if None not in kinds:
            digest = hashlib.sha256(repr(kinds).encode()).digest()[:8]
        number = torch.frombuffer(bytearray(digest), dtype=torch.int64)
        everywhere = torch.cat(self._gather(number))
        return bool(number.item() != 0 and (everywhere == number).all())

    def _share_reduced(self, memory: RankMemory, tensor: Tensor, op: Any) -> None:
        """All ranks get the reduced tensor."""
        is_stored = self._are_alike(kind_of(tensor))
        elements = Elements(tensor, is_stored=is_stored, is_read=True, is_written=True)
        values = elements.values
        with memory.reaching(values):
            # Each rank reduces a part, which nobody else reads or writes.
            begin = values.numel() * self._rank // self._size
            end = values.numel() * (self._rank + 1) // self._size
            own = values[begin:end]
            for first, parts in self._blocks(memory, elements, begin, own):
                result = parts[self._rank]
                elements.reduce(parts, op, result)
                for rank in self._others():
                    memory.write(rank, first, result, elements.device)
        elements.finish()

    def _share_scattered(
        self, memory: RankMemory, output: Tensor, tensor: Tensor, op: Any
    ) -> None:
        """Each rank gets a part of the reduced tensor."""
        is_stored = self._are_in_order(output, tensor)
        # First: a storage that others share moves before it is written, and the input
        # may be a part of it, or it of the input.
        target = Elements(output, is_stored=is_stored, is_written=True)
        source = Elements(tensor, is_stored=is_stored, is_read=True)
        count = target.values.numel()
        with memory.reaching(source.values):
            begin = self._rank * count
            own = source.values[begin : begin + count]
            for first, parts in self._blocks(memory, source, begin, own):
                into = target.values[first - begin :][: parts[0].numel()]
                source.reduce(parts, op, into)
        target.finish()

    def _share_gathered(
        self, memory: RankMemory, output: Tensor, tensor: Tensor
    ) -> None:
        """All ranks get the tensors of all, one after the other."""
        is_stored = self._are_in_order(tensor, output)
        target = Elements(output, is_stored=is_stored, is_written=True)
        source = Elements(tensor, is_stored=is_stored, is_read=True)
        chunks = target.values.view(self._size, -1)
        with memory.reaching(source.values):
            for rank in self._others():
                memory.read(rank, 0, chunks[rank], target.device)
            # A part of the output may be the input, which others are reading.
            if chunks[self._rank].data_ptr() != source.values.data_ptr():
                chunks[self._rank].copy_(source.values)
        target.finish()

    def _others(self) -> list[int]:
        """The other ranks, the next one first: not all begin with the same one."""
        return [(self._rank + step) % self._size for step in range(1, self._size)]

    def _blocks(
        self, memory: RankMemory, elements: Elements, begin: int, own: Tensor
    ) -> Iterator[tuple[int, list[Tensor]]]:
        """The elements of all ranks at the places of ``own``, from ``begin`` on.

        Gives the first place of a block, and the elements of each rank.
        """
        most = BLOCK_BYTES // own.itemsize // (self._size - 1)
        rooms = own.new_empty(self._size, min(most, own.numel()))
        for first in range(0, own.numel(), most):
            block = own[first : first + most]
            parts = [room[: block.numel()] for room in rooms]
            parts[self._rank] = block
            for rank in self._others():
                memory.read(rank, begin + first, parts[rank], elements.device)
            yield begin + first, parts

    def _are_in_order(self, small: Tensor, large: Tensor) -> bool:
        """Whether the elements of both follow each other on the device, everywhere.

        ``large`` is as large as ``small`` of all ranks.
        """
        kinds = kind_of(small), kind_of(large)
        are_alike = self._are_alike(*kinds)
        return are_alike and kinds[1] == (kinds[0][0] * self._size, kinds[0][1])

    def _share_broadcast(self, memory: RankMemory, tensor: Tensor, root: int) -> None:
        """All ranks get the tensor of one."""
        is_stored = self._are_alike(kind_of(tensor))
        is_root = self._rank == root
        elements = Elements(
            tensor, is_stored=is_stored, is_read=is_root, is_written=not is_root
        )
        with memory.reaching(elements.values):
            if not is_root:
                memory.read(root, 0, elements.values, elements.device)
        if not is_root:
            elements.finish()

    # --- through gloo ------------------------------------------------------------

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
                if memory := self._shared(tensor):
                    self._share_reduced(memory, tensor, op)
                else:
                    tensor.copy_(reduce(self._gather(on_host(tensor)), op))

        return self._submit(work, tensors)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: list[Tensor], opts: Any) -> _Work:
        def work() -> None:
            for tensor in tensors:
                parts = self._gather(on_host(tensor))
                if self._rank == opts.rootRank:
                    tensor.copy_(reduce(parts, opts.reduceOp))

        return self._submit(work, tensors)

    def _scatter_sums(self, outputs: list[Tensor], inputs: list[list[Tensor]], op: Any):
        for output, chunks in zip(outputs, inputs, strict=True):
            host = [on_host(c) for c in chunks]
            parts = [torch.empty_like(host[self._rank]) for _ in range(self._size)]
            self._exchange(host, parts)
            output.copy_(reduce(parts, op).view(output.shape))

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
            for output, tensor in zip(outputs, inputs, strict=True):
                if memory := self._shared(tensor):
                    self._share_scattered(memory, output, tensor, opts.reduceOp)
                else:
                    chunks = list(on_host(tensor).view(-1).chunk(self._size))
                    self._scatter_sums([output], [chunks], opts.reduceOp)

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
                if memory := self._shared(tensor):
                    self._share_broadcast(memory, tensor, opts.rootRank)
                    continue
                host = on_host(tensor)
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
                host = on_host(tensor)
                if all(t.numel() == host.numel() for t in targets):
                    parts = self._gather(host)
                else:
                    parts = [buffer(t) for t in targets]
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
                if memory := self._shared(tensor):
                    self._share_gathered(memory, output, tensor)
                else:
                    parts = self._gather(on_host(tensor).view(-1))
                    output.copy_(torch.cat(parts).view(output.shape))

        for output, tensor in zip(outputs, inputs, strict=True):
            self._check_size(output, tensor.numel() * self._size)
        return self._submit(work, outputs)

    def gather(
        self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any
    ) -> _Work:
        def work() -> None:
            for i, tensor in enumerate(inputs):
                parts = self._gather(on_host(tensor))
                if self._rank == opts.rootRank:
                    for target, part in zip(outputs[i], parts, strict=True):
                        target.copy_(part)

        return self._submit(work, outputs)

    def scatter(
        self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any
    ) -> _Work:
        def work() -> None:
            for i, output in enumerate(outputs):
                host = buffer(output)
                chunks = []
                if self._rank == opts.rootRank:
                    chunks = [[on_host(t) for t in inputs[i]]]
                self._gloo.scatter([host], chunks, opts).wait()
                output.copy_(host)

        return self._submit(work, outputs)

    def alltoall(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> _Work:
        def work() -> None:
            parts = [buffer(o) for o in outputs]
            self._exchange([on_host(i) for i in inputs], parts)
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
            parts = list(buffer(output).split(received))
            chunks = [c.contiguous() for c in on_host(input).split(sent)]
            self._exchange(chunks, parts)
            output.copy_(torch.cat(parts))

        return self._submit(work, output)

    def barrier(self, opts: Any = None) -> _Work:
        def work() -> None:
            torch.spyre.synchronize()
            self._gloo.barrier().wait()

        return self._submit(work, None)

    def send(self, tensors: list[Tensor], target: int, tag: int) -> _Work:
        host = [on_host(t) for t in tensors]

        def work() -> None:
            self._gloo.send(host, target, tag + 1).wait()

        return self._submit(work, tensors, messages=True)

    def recv(self, tensors: list[Tensor], source: int, tag: int) -> _Work:
        def work() -> None:
            for tensor in tensors:
                host = buffer(tensor)
                self._gloo.recv([host], source, tag + 1).wait()
                tensor.copy_(host)

        return self._submit(work, tensors, messages=True)

    def recv_anysource(self, tensors: list[Tensor], tag: int) -> _Work:
        sources: list[int] = []

        def work() -> None:
            for tensor in tensors:
                host = buffer(tensor)
                received = self._gloo.recv_anysource([host], tag + 1)
                received.wait()
                sources.append(received._source_rank())
                tensor.copy_(host)

        return self._submit(work, tensors, messages=True, sources=sources)

    # Names that torch.distributed and c10d's C++ callers use for the same.
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    allgather_coalesced = allgather
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base
