# SPDX-License-Identifier: Apache-2.0
"""``spyre::paged_attn_*`` written from docs/spec/drop-in.md, in fp64 and in loops.

Importing this defines the operators: by ibm-fms where it is installed, else as the
sheet has their schemas, with kernels for the CPU alone, as ibm-fms does it.
"""

import importlib.util
import math

import torch
from torch import Tensor

HAS_FMS = importlib.util.find_spec("fms") is not None


def store(key, value, key_cache, value_cache, slot_mapping):
    """Copies of the caches, a slot at a time."""
    caches = (key_cache.clone(), value_cache.clone())
    size = key_cache.shape[1]
    for cache, new in zip(caches, (key, value), strict=True):
        for sequence, slots in enumerate(slot_mapping.tolist()):
            for token, slot in enumerate(slots):
                cache[slot // size, slot % size] = new[sequence, token]
    return caches


def compute(
    query, key_cache, value_cache, scale, ends, starts, table, sinks=None, window=0
):
    """A query and a head at a time, over the keys of its sequence."""
    size, heads = key_cache.shape[1], query.shape[2]
    group = heads // key_cache.shape[2]
    result = torch.zeros(query.shape, dtype=torch.float64)
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        for t in range(query.shape[1]):
            last = end - query.shape[1] + t
            first = max(start, last - window + 1) if window > 0 else start
            if last < start:
                continue  # padding
            places = [
                (int(table[i, j // size]), j % size) for j in range(first, last + 1)
            ]
            for h in range(heads):
                k, v = (
                    torch.stack([cache[page, at, h // group] for page, at in places])
                    for cache in (key_cache.double(), value_cache.double())
                )
                scores = (k @ query[i, t, h].double()) * scale
                out = scores.softmax(0) @ v
                if sinks is not None:
                    excess = scores.logsumexp(0) - sinks[h].double()
                    out = out * torch.sigmoid(excess)
                result[i, t, h] = out
    return result


if HAS_FMS:
    import fms.utils.spyre.paged  # noqa: F401
else:

    @torch.library.custom_op(
        "spyre::paged_attn_store", mutates_args=(), device_types=["cpu", "cuda"]
    )
    def paged_attn_store(
        key: Tensor,
        value: Tensor,
        key_cache: Tensor,
        value_cache: Tensor,
        slot_mapping: Tensor,
    ) -> tuple[Tensor, Tensor]:
        return store(key, value, key_cache, value_cache, slot_mapping)

    @torch.library.custom_op(
        "spyre::paged_attn_compute", mutates_args=(), device_types=["cpu", "cuda"]
    )
    def paged_attn_compute(
        query: Tensor,
        key_cache: Tensor,
        value_cache: Tensor,
        scale: float,
        current_tkv_mask: Tensor,
        left_padded_prompt_mask: Tensor,
        block_table: Tensor,
    ) -> Tensor:
        lengths = (current_tkv_mask, left_padded_prompt_mask)
        made = compute(query, key_cache, value_cache, scale, *lengths, block_table)
        return made.to(query.dtype)

    @torch.library.custom_op(
        "spyre::paged_attn_compute_with_sinks",
        mutates_args=(),
        device_types=["cpu", "cuda"],
    )
    def paged_attn_compute_with_sinks(
        query: Tensor,
        key_cache: Tensor,
        value_cache: Tensor,
        scale: float,
        current_tkv_mask: Tensor,
        left_padded_prompt_mask: Tensor,
        block_table: Tensor,
        sinks: Tensor,
        sliding_window: int,
    ) -> Tensor:
        lengths = (current_tkv_mask, left_padded_prompt_mask)
        caches = (key_cache, value_cache)
        more = (block_table, sinks, sliding_window)
        return compute(query, *caches, scale, *lengths, *more).to(query.dtype)

    @paged_attn_store.register_fake
    def _(key, value, key_cache, value_cache, slot_mapping):
        return key_cache, value_cache

    @paged_attn_compute.register_fake
    def _(query, *rest):
        return torch.zeros_like(query)

    @paged_attn_compute_with_sinks.register_fake
    def _(query, *rest):
        return torch.zeros_like(query)


class Pages:
    """Caches of random values and sequences in them, on the host.

    What no sequence has stored is NaN, and entries of the table beyond a sequence
    name no page.
    """

    def __init__(
        self,
        lengths,
        dtype,
        queries=1,
        heads=4,
        kv_heads=2,
        head_size=16,
        page_size=8,
        seed=0,
    ):
        make = torch.Generator().manual_seed(seed)
        count = [math.ceil(end / page_size) for _, end in lengths]
        numbers = torch.randperm(sum(count) + 2, generator=make)
        self.table = torch.full((len(lengths), max(count) + 1), -1)
        shape = (len(numbers), page_size, kv_heads, head_size)
        values = torch.randn(2, *shape, generator=make)
        used = torch.zeros(shape[:2], dtype=torch.bool)
        for row, ((start, end), pages) in enumerate(zip(lengths, count, strict=True)):
            own, numbers = numbers[:pages], numbers[pages:]
            self.table[row, :pages] = own
            self.table[row, : start // page_size] = 1 << 20
            for j in range(start, end):
                used[own[j // page_size], j % page_size] = True
        values[:, ~used] = torch.nan
        self.key, self.value = values.to(dtype)
        shape = (len(lengths), queries, heads, head_size)
        self.query = torch.randn(shape, generator=make).to(dtype)
        self.sinks = torch.randn(heads, generator=make).to(dtype)
        self.starts, self.ends = torch.tensor(lengths).t()

    def arguments(self, scale=0.3):
        """Of ``paged_attn_compute``."""
        lengths = (self.ends, self.starts)
        return [self.query, self.key, self.value, scale, *lengths, self.table]
