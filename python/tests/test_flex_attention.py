# SPDX-License-Identifier: Apache-2.0
"""``flex_attention`` with functions of scores and masks of blocks."""

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

pytestmark = pytest.mark.usefixtures("no_fallback")


def numbers(seed, *sizes):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed))


def written_out(query, key, value, factors, is_visible):
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    scores = scores * factors[:, None, None]
    scores = scores.masked_fill(~is_visible, float("-inf"))
    return scores.softmax(-1) @ value


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_scores_masks_and_gradients(way):
    torch._dynamo.reset()
    attend = torch.compile(flex_attention) if way == "compiled" else flex_attention
    host = [*(numbers(i, 2, 4, 130, 32) for i in range(3)), numbers(3, 4)]
    inputs = [t.to("spyre").requires_grad_() for t in host]
    factors = inputs[3]
    mask = create_block_mask(
        lambda b, h, i, j: (i >= j) & (i - j < 40), None, None, 130, 130, device="spyre"
    )
    result = attend(
        *inputs[:3], score_mod=lambda s, b, h, i, j: s * factors[h], block_mask=mask
    )
    gradient = numbers(4, *result.shape)
    given = torch.autograd.grad(result, inputs, gradient.to("spyre"))
    place = torch.arange(130)
    distance = place[:, None] - place
    exact = [t.double().requires_grad_() for t in host]
    wanted = written_out(*exact, (distance >= 0) & (distance < 40))
    expected = torch.autograd.grad(wanted, exact, gradient.double())
    for a, e in zip([result, *given], [wanted, *expected], strict=True):
        bound = 2e-5 * e.abs().max().item()
        torch.testing.assert_close(a.detach().cpu().double(), e, rtol=0, atol=bound)
