# SPDX-License-Identifier: Apache-2.0
"""Steps for lists of parameters, and scales of gradients, without the CPU."""

import io

import pytest
import torch
import torch_spyre

pytestmark = pytest.mark.usefixtures("no_fallback")

KINDS = {
    "adam": lambda p, lr: torch.optim.Adam(
        p, lr=lr, weight_decay=0.1, amsgrad=True, fused=True
    ),
    "adamw": lambda p, lr: torch.optim.AdamW(p, lr=lr, maximize=True, fused=True),
    "sgd": lambda p, lr: torch.optim.SGD(
        p, lr=lr, momentum=0.9, nesterov=True, weight_decay=0.1, fused=True
    ),
    "plain sgd": lambda p, lr: torch.optim.SGD(p, lr=lr, fused=True),
    "adagrad": lambda p, lr: torch.optim.Adagrad(p, lr=lr, lr_decay=0.1, fused=True),
}


def numbers(seed, *sizes):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed))


def train(kind, device, lr, scale=None, infinite=()):
    """Parameters after four steps; those in ``infinite`` have a bad gradient."""
    parameters = [
        torch.nn.Parameter(numbers(i, *s).to(device))
        for i, s in enumerate([(3, 70), (5,)])
    ]
    optimizer = KINDS[kind](parameters, lr)
    if scale is not None:
        optimizer.grad_scale = torch.tensor(scale, device=device)
        optimizer.found_inf = torch.tensor(0.0, device=device)
    for step in range(4):
        for i, parameter in enumerate(parameters):
            gradient = numbers(10 * step + i, *parameter.shape) * (scale or 1.0)
            parameter.grad = gradient.to(device)
        if scale is not None:
            optimizer.found_inf.fill_(float(step in infinite))
        optimizer.step()
    return [p.detach().cpu() for p in parameters]


@pytest.mark.parametrize("kind", KINDS)
def test_fused_steps(kind):
    for lr in (0.05, torch.tensor(0.05)):
        if kind == "adagrad" and isinstance(lr, torch.Tensor):
            continue
        actual, wanted = train(kind, "spyre", lr), train(kind, "cpu", lr)
        for a, e in zip(actual, wanted, strict=True):
            torch.testing.assert_close(a, e, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"foreach": False}, {"fused": True}, {"capturable": True}], ids=str
)
def test_saved_steps_go_on(options):
    """To the bit, in other objects, wherever the file puts the numbers of steps."""

    def run(save, place=None):
        values = {"p": numbers(0, 3, 70).to("spyre")}
        state = None
        for step in range(4):
            if step in (0, 2):
                parameter = torch.nn.Parameter(values["p"].detach().clone())
                optimizer = torch.optim.Adam([parameter], lr=0.05, **options)
                if step == 2:
                    optimizer.load_state_dict(save(state, place))
            parameter.grad = numbers(10 + step, 3, 70).to("spyre")
            optimizer.step()
            values["p"], state = parameter, optimizer.state_dict()
        moments = state["state"][0]
        assert moments["exp_avg"].is_spyre and moments["step"] == 4
        return [parameter.detach().cpu(), *(moments[n].cpu() for n in sorted(moments))]

    def through_file(state, place):
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        return torch.load(file, map_location=place)

    wanted = run(lambda state, place: state)
    for place in (None, "cpu", "spyre"):
        for a, e in zip(run(through_file, place), wanted, strict=True):
            assert torch.equal(a, e)


def test_fused_steps_without_their_scale():
    actual, wanted = (train("adam", d, 0.05, 64.0, {1}) for d in ("spyre", "cpu"))
    for a, e in zip(actual, wanted, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-5, atol=1e-6)


def test_scales_of_gradients():
    """As on the CPU: it grows after two steps, and shrinks after an infinity."""

    def run(device):
        scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=2)
        parameter = torch.nn.Parameter(torch.ones(70, device=device))
        optimizer = torch.optim.SGD([parameter], lr=0.125)
        found = []
        for factor in (1.0, 2.0, float("inf"), 1.0, 1.0, 1.0):
            optimizer.zero_grad()
            scaler.scale((parameter * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            found.append((scaler.get_scale(), parameter[0].item()))
        return found

    assert run("spyre") == run("cpu")
    assert torch_spyre.fallback_report() == {}
