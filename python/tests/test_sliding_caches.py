# SPDX-License-Identifier: Apache-2.0
"""Language models whose caches slide: the last keys and values are kept."""

import copy

import pytest
import torch
from numerics import compiled, poison, rms
from tiny_llama import tiny_llama
from torch_spyre import _C
from torch_spyre.compile_backend import compiled_parts

pytestmark = pytest.mark.usefixtures("without_gradients")

DEVICE = "spyre"
WINDOW = 16

#: As Mistral, and as Gemma 2, whose every second layer keeps everything.
MODELS = {
    "all layers": {"windows": (WINDOW,)},
    "every second layer": {"windows": (WINDOW, None), "cap": 20.0},
}


def generate(step, model, ids, count, padding=None, feed=None):
    """Feeds ``ids``, then ``count`` tokens: those of ``feed``, or the likeliest.

    Gives the logits of the last position and the programs compiled, per step.
    """
    device = next(model.parameters()).device
    steps, cache, past = [], None, 0
    fed = ids
    for number in range(count):
        before = len(compiled_parts())
        mask = None if padding is None else padding.to(device)
        logits, cache = step(fed.to(device), cache, mask, past, True)
        poison()
        steps.append((logits[:, -1].float().cpu(), len(compiled_parts()) - before))
        past += fed.shape[1]
        fed = steps[-1][0].argmax(-1, True) if feed is None else feed[number]
        if padding is not None:
            padding = torch.cat((padding, torch.ones(len(ids), 1, dtype=torch.bool)), 1)
    return steps


def prompt(length, batch=1, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 96, (batch, length), generator=generator)


def left_padding(length, batch):
    """Row b begins with b tokens of padding; that of one row with 2."""
    starts = torch.arange(batch) if batch > 1 else torch.tensor([2])
    return torch.arange(length) >= starts[:, None]


def on_device(model):
    return copy.deepcopy(model).half().to(DEVICE)


def assert_right(model, device, step, ids, count, padding=None):
    """As exact as operator by operator, on the tokens that fp64 finds likeliest; gives
    the programs compiled in each step. ``step`` is ``device`` compiled.
    """
    wide = copy.deepcopy(model).double()
    wanted = generate(wide, wide, ids, count, padding)
    tokens = [logits.argmax(-1, True) for logits, _ in wanted]
    actual = generate(step, device, ids, count, padding, tokens)
    eager = generate(device, device, ids, count, padding, tokens)
    for number, ((w, _), (a, _), (e, _)) in enumerate(
        zip(wanted, actual, eager, strict=True)
    ):
        error, allowed = (
            rms(x.double() - w.double()) / rms(w.double()) for x in (a, e)
        )
        assert error <= 2 * allowed + 1e-6, f"step {number}: {error}, {allowed}"
        # The same token, where it does not hang on the rounding.
        best = w.topk(2, -1).values
        is_clear = best[:, 0] - best[:, 1] > 4 * (e - w).abs().amax(-1)
        same = a.argmax(-1) == w.argmax(-1)
        assert same[is_clear].all(), f"step {number}"
    return [programs for _, programs in actual]


def assert_slides_in_place(step, model, length):
    """Each cache is copied once in as many steps as the window has tokens; gives the
    programs compiled.
    """
    changes, programs = [], 0
    for count in (20, 20 + 2 * (WINDOW + 1)):
        before = _C.growth_counts()
        steps = generate(step, model, prompt(length), count)
        after = _C.growth_counts()
        changes.append({key: after[key] - before[key] for key in after})
        programs += sum(now for _, now in steps)
    first, all_steps = changes
    both = {key: all_steps[key] - first[key] for key in first}
    caches = 2 * len(model.windows)
    sliding = 2 * sum(window is not None for window in model.windows)
    assert both["shared"] + both["copied"] == 2 * (WINDOW + 1) * caches
    # What has not grown enough for its room yet, or has, on the way.
    assert both["copied"] <= 3 * sliding + 2 * (caches - sliding)
    return programs


@pytest.mark.parametrize(
    ("layers", "length"),
    [("all layers", 5), *(("every second layer", n) for n in (5, WINDOW, 40))],
)
def test_from_growing_to_sliding(layers, length):
    """Below the window, at its end, and beyond: soon nothing is compiled, and the
    caches slide in place.
    """
    model = tiny_llama(**MODELS[layers])
    device = on_device(model)
    step = compiled(device, dynamic=None)
    programs = assert_right(model, device, step, prompt(length), 44)
    # PyTorch has graphs of its own for the first length, the others, and the two that
    # end the growth.
    assert sum(programs) <= 8
    assert sum(programs[32:]) == 0
    assert assert_slides_in_place(step, device, length) == 0


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("length", [5, 40])
def test_caches_slide_in_place_operator_by_operator(options, length):
    model = on_device(tiny_llama(**options))
    assert_slides_in_place(model, model, length)


@pytest.mark.parametrize(
    ("layers", "batch"), [("all layers", 1), ("every second layer", 4)]
)
def test_left_padding(layers, batch):
    model = tiny_llama(**MODELS[layers])
    device = on_device(model)
    step = compiled(device, dynamic=None)
    padding = left_padding(7, batch)
    programs = assert_right(model, device, step, prompt(7, batch), 40, padding)
    assert sum(programs[32:]) == 0


def test_prompts_of_many_lengths():
    """After a few, the prompt and the logits of its last token need no program."""
    model = tiny_llama(**MODELS["every second layer"])
    device = on_device(model)
    step = compiled(device, dynamic=None)
    programs = [
        sum(assert_right(model, device, step, prompt(n), 1))
        for n in (5, 9, 3, 14, 20, 33, 70, 65, 64, 63)
    ]
    assert sum(programs) <= 5
    assert sum(programs[5:]) == 0


@pytest.mark.parametrize("shape", [(2, 4, 7, 16), (2, 2, 7, 16), (1, 2, 8, 16)])
def test_a_full_static_cache_of_any_size(shape):
    """All move one place on, and an index says where the new ones are put."""

    def update(cache, new):
        moved = cache.roll(-1, dims=-2)
        last = torch.tensor([-1], dtype=int, device=cache.device)
        moved[:, :, last] = new
        return cache.copy_(moved)

    cache, new = torch.randn(shape), torch.randn(*shape[:2], 1, shape[3])
    found = torch.compile(update, backend=DEVICE, dynamic=True)(
        cache.to(DEVICE), new.to(DEVICE)
    )
    assert torch.equal(found.cpu(), update(cache, new))
