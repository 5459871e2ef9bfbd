"""Answers to the checks of infilling."""

import torch

from magnet_lab.course.answers import right, wrong

# infill_step(context_length, anchor, span_length, step)


@right("infill_step")
def step_by_lists(context_length, anchor, span_length, step):
    left = list(range(anchor + 1))
    right_side = list(range(anchor + 1 + span_length, context_length + span_length))
    return left + right_side, anchor + step, context_length + step


@right("infill_step")
def step_by_tensors(context_length, anchor, span_length, step):
    positions = torch.arange(context_length)
    positions[anchor + 1 :] += span_length
    cache = context_length + (step - 1)
    return positions, anchor + 1 + (step - 1), cache + 1


@wrong("infill_step", "leave no gap")
def step_without_gap(context_length, anchor, span_length, step):
    return list(range(context_length)), anchor + step, context_length + step


@wrong("infill_step", "put behind the whole context")
def step_behind_the_context(context_length, anchor, span_length, step):
    return list(range(context_length)), context_length + step - 1, context_length + step


@wrong("infill_step", "one too small")
def step_one_too_small(context_length, anchor, span_length, step):
    positions, _, keys = step_by_lists(context_length, anchor, span_length, step)
    return positions, anchor + step - 1, keys


@wrong("infill_step", "one too large")
def step_of_the_predicted_token(context_length, anchor, span_length, step):
    positions, _, keys = step_by_lists(context_length, anchor, span_length, step)
    return positions, anchor + 1 + step, keys


@wrong("infill_step", "only what stands left of the span")
def step_causal(context_length, anchor, span_length, step):
    positions, position, _ = step_by_lists(context_length, anchor, span_length, step)
    return positions, position, position + 1


@wrong("infill_step", "the fed token itself is missing")
def step_without_itself(context_length, anchor, span_length, step):
    positions, position, _ = step_by_lists(context_length, anchor, span_length, step)
    return positions, position, context_length + step - 1


@wrong("infill_step", "the span's own past is missing")
def step_without_its_past(context_length, anchor, span_length, step):
    positions, position, _ = step_by_lists(context_length, anchor, span_length, step)
    return positions, position, context_length + 1


@wrong("infill_step", "the whole gap counts as seen")
def step_sees_the_gap(context_length, anchor, span_length, step):
    positions, position, _ = step_by_lists(context_length, anchor, span_length, step)
    return positions, position, context_length + span_length


@wrong("infill_step", "the anchor itself is moved")
def step_moves_the_anchor(context_length, anchor, span_length, step):
    positions = [p if p < anchor else p + span_length for p in range(context_length)]
    return positions, anchor + step, context_length + step


@wrong("infill_step", "the gap grows with every step")
def step_with_a_growing_gap(context_length, anchor, span_length, step):
    positions = [p if p <= anchor else p + step for p in range(context_length)]
    return positions, anchor + step, context_length + step


# rank_candidates(log_probs)


@right("rank_candidates")
def rank_by_sorting(log_probs):
    return sorted(range(len(log_probs)), key=lambda i: -log_probs[i].mean().item())


@right("rank_candidates")
def rank_by_argsort(log_probs):
    perplexities = torch.stack([torch.exp(-candidate.mean()) for candidate in log_probs])
    return perplexities.argsort()


@wrong("rank_candidates", "the *sum*")
def rank_by_sum(log_probs):
    return sorted(range(len(log_probs)), key=lambda i: log_probs[i].sum().item(), reverse=True)


@wrong("rank_candidates", "upside down")
def rank_upside_down(log_probs):
    return sorted(range(len(log_probs)), key=lambda i: log_probs[i].mean().item())


@wrong("rank_candidates", "probabilities are averaged")
def rank_by_mean_probability(log_probs):
    return sorted(range(len(log_probs)), key=lambda i: log_probs[i].exp().mean().item(), reverse=True)


@wrong("rank_candidates", "only the best one is returned")
def rank_only_the_best(log_probs):
    return max(range(len(log_probs)), key=lambda i: log_probs[i].mean())


@wrong("rank_candidates", "these are ranks")
def rank_of_each(log_probs):
    return torch.stack([-candidate.mean() for candidate in log_probs]).argsort().argsort()


@wrong("rank_candidates", "the sorted scores are returned")
def rank_scores(log_probs):
    return sorted([candidate.mean().item() for candidate in log_probs], reverse=True)


@wrong("rank_candidates", "the longest comes first")
def rank_by_length(log_probs):
    return sorted(range(len(log_probs)), key=lambda i: -len(log_probs[i]))


@wrong("rank_candidates", "only the first token")
def rank_by_first_token(log_probs):
    return sorted(range(len(log_probs)), key=lambda i: log_probs[i][0].item(), reverse=True)
