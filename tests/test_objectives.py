"""Every loss against its equation, written as the sums that are printed there."""

import math

import pytest
import torch

from magnet_lab.objectives import ProjectionHead, info_nce, mntp_loss, msg_loss, mtp_loss
from magnet_lab.views import NO_LABEL

LOGITS = torch.randn(3, 7, 11, generator=torch.Generator().manual_seed(0))
LABELS = torch.full((3, 7), NO_LABEL)
LABELS[0, 2], LABELS[0, 5], LABELS[2, 0] = 4, 10, 0


def equation_2(logits: torch.Tensor, labels: torch.Tensor, divide_by: float) -> float:
    total = 0.0
    for n in range(logits.shape[0]):
        for position in range(logits.shape[1]):
            for v in range(logits.shape[2]):
                y = 1.0 if int(labels[n, position]) == v else 0.0
                exponentials = [math.exp(float(x)) for x in logits[n, position]]
                total += y * math.log(exponentials[v] / sum(exponentials))
    return -total / divide_by


@pytest.mark.parametrize("loss", [mntp_loss, msg_loss, mtp_loss])
def test_cross_entropies(loss):
    assert loss(LOGITS, LABELS).item() == pytest.approx(equation_2(LOGITS, LABELS, 3), rel=1e-5)
    assert loss(LOGITS, LABELS, divide_by=21).item() == pytest.approx(equation_2(LOGITS, LABELS, 21), rel=1e-5)


def test_no_label_is_no_loss_and_no_gradient():
    logits = LOGITS.clone().requires_grad_()
    loss = mntp_loss(logits, torch.full((3, 7), NO_LABEL))
    loss.backward()
    assert loss == 0 and (logits.grad == 0).all()


def test_only_labelled_positions_matter():
    kept = LABELS != NO_LABEL
    assert torch.allclose(mntp_loss(LOGITS[kept], LABELS[kept]), mntp_loss(LOGITS, LABELS))


@pytest.mark.parametrize("temperature", [0.05, 0.1, 1.0])
def test_equation_3(temperature):
    generator = torch.Generator().manual_seed(1)
    e, e_plus = torch.randn(5, 8, generator=generator), torch.randn(5, 8, generator=generator)

    def cosine(a, b):
        return float(a @ b) / (float(a @ a) ** 0.5 * float(b @ b) ** 0.5)

    total = 0.0
    for i in range(5):
        above = math.exp(cosine(e[i], e_plus[i]) / temperature)
        below = sum(math.exp(cosine(e[i], e_plus[j]) / temperature) for j in range(5))
        total += math.log(above / below)
    assert info_nce(e, e_plus, temperature=temperature).item() == pytest.approx(-total / 5, rel=1e-5)


def test_other_candidates_and_targets():
    """A process's anchors among the candidates of all: the second of two processes finds its own at 3, 4, 5."""
    generator = torch.Generator().manual_seed(2)
    e, e_plus = torch.randn(6, 8, generator=generator), torch.randn(6, 8, generator=generator)
    whole = info_nce(e, e_plus)
    halves = [info_nce(e[rows], e_plus, targets=rows) for rows in torch.arange(6).split(3)]
    assert torch.allclose(whole, sum(halves) / 2)


def test_info_nce_at_its_ends():
    assert info_nce(torch.eye(4), torch.eye(4), temperature=0.01) < 1e-6
    assert info_nce(torch.ones(4, 3), torch.ones(4, 3)).item() == pytest.approx(math.log(4))
    with pytest.raises(ValueError, match="temperature of 0"):
        info_nce(torch.eye(2), torch.eye(2), temperature=0)
    with pytest.raises(ValueError, match="4 anchors need as many candidates, not 3"):
        info_nce(torch.eye(4), torch.eye(4)[:3])


def test_projection_head_starts_as_the_identity_and_learns():
    head, states = ProjectionHead(8), torch.randn(3, 8)
    assert torch.equal(head(states), states)
    info_nce(head(states), torch.randn(3, 8)).backward()
    assert head.outer.weight.grad.abs().sum() > 0
