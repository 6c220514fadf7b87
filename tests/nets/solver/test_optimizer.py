"""A solver as a torch optimizer: its state, and parameters without a gradient."""

import copy

import torch

from cuffi.nets.solver import caffe_solver


def test_a_parameter_without_a_gradient_decays(tmp_path):
    (tmp_path / "s.prototxt").write_text('base_lr: 0.5 weight_decay: 0.5 lr_policy: "fixed"')
    module = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(module.weight)
    optimizer, _ = caffe_solver(tmp_path / "s.prototxt", module)
    optimizer.step()
    assert module.weight.item() == 0.75


def test_a_state_dict_continues(net, tmp_path):
    (tmp_path / "s.prototxt").write_text(
        'type: "Adam" base_lr: 0.1 momentum: 0.9 lr_policy: "exp" gamma: 0.5'
    )
    optimizer, schedule = caffe_solver(tmp_path / "s.prototxt", net)
    batch = {"data": torch.randn(4, 3, dtype=torch.double), "label": torch.randn(4, 2, dtype=torch.double)}

    def update(optimizer, schedule, net):
        optimizer.zero_grad()
        net.loss(net(**batch)).backward()
        optimizer.step()
        schedule.step()

    update(optimizer, schedule, net)
    other = copy.deepcopy(net)
    restored, its_schedule = caffe_solver(tmp_path / "s.prototxt", other)
    restored.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    its_schedule.load_state_dict(schedule.state_dict())
    for _ in range(3):
        update(optimizer, schedule, net)
        update(restored, its_schedule, other)
    for p, q in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(p, q)
    assert schedule.get_last_lr() == its_schedule.get_last_lr()
