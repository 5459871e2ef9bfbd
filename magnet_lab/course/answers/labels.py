"""Answers to the checks of labels."""

import torch

from magnet_lab.course.answers import right, wrong

# mntp_labels(input_ids, corrupted, selected)


@right("mntp_labels")
def mntp_by_loops(input_ids, corrupted, selected):
    labels = torch.full_like(input_ids, -100)
    for row in range(input_ids.shape[0]):
        for place in range(input_ids.shape[1] - 1):
            if selected[row, place + 1]:
                labels[row, place] = input_ids[row, place + 1]
    return labels


@right("mntp_labels")
def mntp_by_rolling(input_ids, corrupted, selected):
    labels = input_ids.masked_fill(~selected, -100).roll(-1, dims=1)
    labels[:, -1] = -100
    return labels


@right("mntp_labels")
def mntp_by_padding(input_ids, corrupted, selected):
    targets = torch.where(selected, input_ids, torch.tensor(-100))
    return torch.nn.functional.pad(targets[:, 1:], (0, 1), value=-100)


@wrong("mntp_labels", "the token at l + 1, so the label")
def mntp_not_shifted(input_ids, corrupted, selected):
    return input_ids.masked_fill(~selected, -100)


@wrong("mntp_labels", "tokens of the corrupted text")
def mntp_of_the_corrupted(input_ids, corrupted, selected):
    labels = torch.full_like(corrupted, -100)
    labels[:, :-1][selected[:, 1:]] = corrupted[:, 1:][selected[:, 1:]]
    return labels


@wrong("mntp_labels", "shifted the wrong way")
def mntp_wrong_way(input_ids, corrupted, selected):
    labels = torch.full_like(input_ids, -100)
    labels[:, 1:] = input_ids[:, :-1].masked_fill(~selected[:, :-1], -100)
    return labels


@wrong("mntp_labels", "every position has a label")
def mntp_every_token(input_ids, corrupted, selected):
    labels = torch.full_like(input_ids, -100)
    labels[:, :-1] = input_ids[:, 1:]
    return labels


@wrong("mntp_labels", "the selection is not shifted")
def mntp_selection_stays(input_ids, corrupted, selected):
    labels = torch.roll(input_ids, -1, dims=1)
    labels[~selected] = -100
    labels[:, -1] = -100
    return labels


@wrong("mntp_labels", "one position short")
def mntp_too_short(input_ids, corrupted, selected):
    return torch.where(selected[:, 1:], input_ids[:, 1:], -100)


@wrong("mntp_labels", "only the tokens that look different")
def mntp_only_changed(input_ids, corrupted, selected):
    labels = torch.full_like(input_ids, -100)
    labels[:, :-1] = torch.where(input_ids[:, 1:] != corrupted[:, 1:], input_ids[:, 1:], -100)
    return labels


@wrong("mntp_labels", "only places with the mask token")
def mntp_only_masks(input_ids, corrupted, selected):
    labels = torch.full_like(input_ids, -100)
    hidden = corrupted == 3
    labels[:, :-1] = torch.where(hidden[:, 1:], input_ids[:, 1:], -100)
    return labels


@wrong("mntp_labels", "hold 0")
def mntp_zeros(input_ids, corrupted, selected):
    labels = torch.zeros_like(input_ids)
    labels[:, :-1] = input_ids[:, 1:] * selected[:, 1:]
    return labels


@wrong("mntp_labels", "it is the token at l, which the model has in front of it")
def mntp_own_token(input_ids, corrupted, selected):
    labels = torch.full_like(input_ids, -100)
    for row, place in selected.nonzero().tolist():
        labels[row, place - 1] = input_ids[row, place - 1]
    return labels


@wrong("mntp_labels", "wraps around")
def mntp_wraps(input_ids, corrupted, selected):
    labels = torch.roll(input_ids, -1, dims=1)
    keep = torch.roll(selected, -1, dims=1)
    keep[:, -1] = True
    return labels.masked_fill(~keep, -100)


# msg_labels(input_ids, span_ids)


@right("msg_labels")
def msg_by_loops(input_ids, span_ids):
    labels = torch.full_like(input_ids, -100)
    for row in range(len(input_ids)):
        for place in range(input_ids.shape[1] - 1):
            if span_ids[row, place + 1] > 0 and span_ids[row, place] != -1:
                labels[row, place] = input_ids[row, place + 1]
    return labels


@right("msg_labels")
def msg_by_slices(input_ids, span_ids):
    targets = (span_ids > 0)[:, 1:] & (span_ids >= 0)[:, :-1]
    labels = torch.where(targets, input_ids[:, 1:], -100)
    return torch.cat([labels, torch.full((len(input_ids), 1), -100)], dim=1)


@wrong("msg_labels", "speaks of the token at l + 1")
def msg_not_shifted(input_ids, span_ids):
    return torch.where(span_ids > 0, input_ids, -100)


@wrong("msg_labels", "the first token of a span is not asked for")
def msg_without_first_tokens(input_ids, span_ids):
    labels = torch.full_like(input_ids, -100)
    inside = (span_ids[:, 1:] > 0) & (span_ids[:, 1:] == span_ids[:, :-1])
    labels[:, :-1][inside] = input_ids[:, 1:][inside]
    return labels


@wrong("msg_labels", "the token after a span is a target")
def msg_of_span_outputs(input_ids, span_ids):
    labels = torch.roll(input_ids, -1, dims=1)
    labels[span_ids <= 0] = -100
    labels[:, -1] = -100
    return labels


@wrong("msg_labels", "padding counts as a span token")
def msg_padding_too(input_ids, span_ids):
    labels = torch.full_like(input_ids, -100)
    labels[:, :-1] = torch.where(span_ids[:, 1:] != 0, input_ids[:, 1:], -100)
    return labels


@wrong("msg_labels", "only the first span")
def msg_first_span_only(input_ids, span_ids):
    labels = torch.full_like(input_ids, -100)
    wanted = (span_ids[:, 1:] == 1) & (span_ids[:, :-1] >= 0)
    labels[:, :-1] = torch.where(wanted, input_ids[:, 1:], -100)
    return labels


@wrong("msg_labels", "nothing predicts a first token")
def msg_first_token_behind_padding(input_ids, span_ids):
    labels = torch.full_like(input_ids, -100)
    labels[:, :-1] = torch.where(span_ids[:, 1:] > 0, input_ids[:, 1:], -100)
    return labels


@wrong("msg_labels", "context and spans are swapped")
def msg_of_the_context(input_ids, span_ids):
    labels = torch.full_like(input_ids, -100)
    labels[:, :-1] = torch.where(span_ids[:, 1:] == 0, input_ids[:, 1:], -100)
    return labels


@wrong("msg_labels", "one position short")
def msg_too_short(input_ids, span_ids):
    targets = (span_ids > 0)[:, 1:] & (span_ids >= 0)[:, :-1]
    return torch.where(targets, input_ids[:, 1:], -100)


# mtp_labels(input_ids, corrupted, selected)


@right("mtp_labels")
def mtp_where(input_ids, corrupted, selected):
    return torch.where(selected, input_ids, -100)


@right("mtp_labels")
def mtp_by_index(input_ids, corrupted, selected):
    labels = torch.full_like(input_ids, -100)
    labels[selected] = input_ids[selected]
    return labels


@wrong("mtp_labels", "this is MNTP")
def mtp_shifted(input_ids, corrupted, selected):
    labels = torch.full_like(input_ids, -100)
    labels[:, :-1] = torch.where(selected[:, 1:], input_ids[:, 1:], -100)
    return labels


@wrong("mtp_labels", "tokens of the corrupted text")
def mtp_of_the_corrupted(input_ids, corrupted, selected):
    return corrupted.masked_fill(~selected, -100)


@wrong("mtp_labels", "every token has a label")
def mtp_every_token(input_ids, corrupted, selected):
    return input_ids.clone()


@wrong("mtp_labels", "upside down")
def mtp_upside_down(input_ids, corrupted, selected):
    return input_ids.masked_fill(selected, -100)


@wrong("mtp_labels", "only the tokens that look different")
def mtp_only_changed(input_ids, corrupted, selected):
    return torch.where(input_ids == corrupted, -100, input_ids)


@wrong("mtp_labels", "only places with the mask token")
def mtp_only_masks(input_ids, corrupted, selected):
    return torch.where(corrupted == 3, input_ids, -100)


@wrong("mtp_labels", "hold 0")
def mtp_zeros(input_ids, corrupted, selected):
    return input_ids * selected


# prefix_labels(input_ids, prefix_lengths)


@right("prefix_labels")
def prefix_by_loops(input_ids, prefix_lengths):
    labels = torch.full_like(input_ids, -100)
    for row, prefix in enumerate(prefix_lengths.tolist()):
        for place in range(prefix, input_ids.shape[1]):
            labels[row, place - 1] = input_ids[row, place]
    return labels


@right("prefix_labels")
def prefix_by_comparison(input_ids, prefix_lengths):
    place = torch.arange(input_ids.shape[1])
    labels = input_ids.roll(-1, dims=1)
    labels[place[None, :] < prefix_lengths[:, None] - 1] = -100
    labels[:, -1] = -100
    return labels


@wrong("prefix_labels", "speaks of the token at l + 1")
def prefix_not_shifted(input_ids, prefix_lengths):
    place = torch.arange(input_ids.shape[1])
    return torch.where(place[None, :] >= prefix_lengths[:, None], input_ids, -100)


@wrong("prefix_labels", "the first target token is not asked for")
def prefix_without_first(input_ids, prefix_lengths):
    labels = torch.full_like(input_ids, -100)
    labels[:, :-1] = input_ids[:, 1:]
    labels[torch.arange(input_ids.shape[1])[None, :] < prefix_lengths[:, None]] = -100
    return labels


@wrong("prefix_labels", "the prefix is asked for as well")
def prefix_too(input_ids, prefix_lengths):
    labels = torch.full_like(input_ids, -100)
    labels[:, :-1] = input_ids[:, 1:]
    return labels


@wrong("prefix_labels", "the prefix's last token is asked for")
def prefix_last_token_too(input_ids, prefix_lengths):
    labels = torch.full_like(input_ids, -100)
    for row, prefix in enumerate(prefix_lengths.tolist()):
        start = max(prefix - 1, 1)
        labels[row, start - 1 : -1] = input_ids[row, start:]
    return labels


@wrong("prefix_labels", "swapped")
def prefix_swapped(input_ids, prefix_lengths):
    labels = torch.full_like(input_ids, -100)
    for row, prefix in enumerate(prefix_lengths.tolist()):
        labels[row, : prefix - 1] = input_ids[row, 1:prefix]
    return labels


@wrong("prefix_labels", "the first row's prefix length")
def prefix_of_the_first_row(input_ids, prefix_lengths):
    labels = torch.full_like(input_ids, -100)
    start = int(prefix_lengths[0])
    labels[:, start - 1 : -1] = input_ids[:, start:]
    return labels


@wrong("prefix_labels", "wraps around")
def prefix_wraps(input_ids, prefix_lengths):
    labels = input_ids.roll(-1, dims=1)
    labels[torch.arange(input_ids.shape[1])[None, :] < prefix_lengths[:, None] - 1] = -100
    return labels
