"""Answers to the checks of masks."""

import torch

from magnet_lab.course.answers import right, wrong

# mask(span_ids)


@right("mask")
def mask_by_loops(span_ids):
    batch, length = span_ids.shape
    allowed = torch.zeros(batch, 1, length, length, dtype=torch.bool)
    for b in range(batch):
        for q in range(length):
            for k in range(length):
                is_context = span_ids[b, k] == 0
                same_span = span_ids[b, q] == span_ids[b, k] and k <= q
                allowed[b, 0, q, k] = is_context or same_span
    return allowed


@right("mask")
def mask_by_broadcasting(span_ids):
    query, key = span_ids.unsqueeze(2), span_ids.unsqueeze(1)
    past = torch.ones(span_ids.shape[1], span_ids.shape[1]).tril().bool()
    return (key == 0) | ((query == key) & past)


@right("mask")
def mask_where_padding_sees_all(span_ids):
    query, key = span_ids[:, :, None], span_ids[:, None, :]
    place = torch.arange(span_ids.size(1))
    seen = torch.where(key == 0, True, (query == key) & (place[None, :] <= place[:, None]))
    return torch.where(query == -1, torch.tensor(True), seen)[:, None]


@wrong("mask", "the answer leaks into the context")
def mask_context_sees_the_spans_past(span_ids):
    query, key = span_ids[:, :, None], span_ids[:, None, :]
    past = torch.ones(span_ids.shape[1], span_ids.shape[1]).tril().bool()
    return (key == 0) | ((key > 0) & (query == 0)) | ((query == key) & past)


@wrong("mask", "spans never see each other")
def mask_spans_see_earlier_spans(span_ids):
    query, key = span_ids[:, :, None], span_ids[:, None, :]
    past = torch.ones(span_ids.shape[1], span_ids.shape[1]).tril().bool()
    return (key == 0) | ((query > 0) & (key > 0) & past) | ((query == -1) & past)


@wrong("mask", "what is to be predicted stands in plain view")
def mask_span_reads_itself_both_ways(span_ids):
    query, key = span_ids[:, :, None], span_ids[:, None, :]
    return (key == 0) | (query == key)


@wrong("mask", "does not see itself")
def mask_strictly_before(span_ids):
    query, key = span_ids[:, :, None], span_ids[:, None, :]
    place = torch.arange(span_ids.shape[1])
    return (key == 0) | ((query == key) & (place[None, :] < place[:, None]))


@wrong("mask", "queries and keys are swapped")
def mask_transposed(span_ids):
    key, query = span_ids[:, :, None], span_ids[:, None, :]
    place = torch.arange(span_ids.shape[1])
    return (key == 0) | ((query == key) & (place[:, None] <= place[None, :]))


@wrong("mask", "plain causal mask")
def mask_causal_everywhere(span_ids):
    batch, length = span_ids.shape
    return torch.tril(torch.ones(length, length)).bool().expand(batch, 1, length, length)


@wrong("mask", "everybody sees everybody")
def mask_bidirectional_everywhere(span_ids):
    batch, length = span_ids.shape
    return torch.ones(batch, 1, length, length).bool()


@wrong("mask", "upside down")
def mask_true_means_blocked(span_ids):
    return ~mask_by_loops(span_ids)


@wrong("mask", "numbers in place of booleans")
def mask_of_numbers(span_ids):
    batch, length = span_ids.shape
    allowed = torch.zeros(batch, length, length)
    for b in range(batch):
        for q in range(length):
            for k in range(length):
                if span_ids[b, k] == 0 or (span_ids[b, q] == span_ids[b, k] and k <= q):
                    allowed[b, q, k] = 1
    return allowed


@wrong("mask", "additive mask")
def mask_of_minus_infinity(span_ids):
    scores = torch.zeros(span_ids.shape[0], 1, span_ids.shape[1], span_ids.shape[1])
    return scores.masked_fill(~mask_by_loops(span_ids), float("-inf"))


@wrong("mask", "nobody may look at padding")
def mask_padding_is_seen(span_ids):
    query, key = span_ids[:, :, None], span_ids[:, None, :]
    past = torch.ones(span_ids.shape[1], span_ids.shape[1]).tril().bool()
    return (key <= 0) | ((query == key) & past)


@wrong("mask", "softmax over an empty row is NaN")
def mask_padding_row_is_empty(span_ids):
    query, key = span_ids[:, :, None], span_ids[:, None, :]
    past = torch.ones(span_ids.shape[1], span_ids.shape[1]).tril().bool()
    return ((key == 0) | ((query == key) & past)) & (query >= 0)


@wrong("mask", "first row's mask")
def mask_of_the_first_text_for_all(span_ids):
    ids = span_ids[0]
    past = torch.ones(len(ids), len(ids)).tril().bool()
    one = (ids[None, :] == 0) | ((ids[:, None] == ids[None, :]) & past)
    return one.repeat(len(span_ids), 1, 1)


@wrong("mask", "only the first text of the batch")
def mask_of_one_text(span_ids):
    ids = span_ids[0]
    past = torch.ones(len(ids), len(ids)).tril().bool()
    return ((ids[None, :] == 0) | ((ids[:, None] == ids[None, :]) & past))[None]


@wrong("mask", "the context is read in both directions")
def mask_with_a_causal_context(span_ids):
    query, key = span_ids[:, :, None], span_ids[:, None, :]
    past = torch.ones(span_ids.shape[1], span_ids.shape[1]).tril().bool()
    return ((key == 0) & ((query != 0) | past)) | ((query == key) & past)


@wrong("mask", "a span sees the whole context")
def mask_span_sees_only_the_left(span_ids):
    query, key = span_ids[:, :, None], span_ids[:, None, :]
    past = torch.ones(span_ids.shape[1], span_ids.shape[1]).tril().bool()
    return ((key == 0) & ((query == 0) | past)) | ((query == key) & past)


# span_ids(tokens, mode)


@right("span_ids")
def span_ids_where(tokens, mode):
    return torch.where(tokens, 1 if mode == "causal" else 0, -1)


@right("span_ids")
def span_ids_by_loops(tokens, mode):
    ids = []
    for row in tokens.tolist():
        ids.append([(int(mode == "causal") if token else -1) for token in row])
    return torch.tensor(ids)


@wrong("span_ids", "swapped")
def span_ids_swapped(tokens, mode):
    return torch.where(tokens, 0 if mode == "causal" else 1, -1)


@wrong("span_ids", "span of its own")
def span_ids_counted(tokens, mode):
    ids = tokens.long().cumsum(dim=1) if mode == "causal" else torch.zeros_like(tokens, dtype=torch.long)
    return ids.masked_fill(~tokens, -1)


@wrong("span_ids", "padding counts as context")
def span_ids_padding_is_context(tokens, mode):
    return tokens.long() if mode == "causal" else torch.zeros_like(tokens, dtype=torch.long)


@wrong("span_ids", "padding is not marked")
def span_ids_without_padding(tokens, mode):
    return torch.full(tokens.shape, 1 if mode == "causal" else 0)


@wrong("span_ids", "the mode is not used")
def span_ids_always_context(tokens, mode):
    return tokens.long() - 1


@wrong("span_ids", "mask of tokens")
def span_ids_as_tokens(tokens, mode):
    return tokens.long()


# reach(mask, layers)


@right("reach")
def reach_by_products(mask, layers):
    reached = mask.float()
    for _ in range(layers - 1):
        reached = (reached @ mask.float() > 0).float()
    return reached.bool()


@right("reach")
def reach_by_loops(mask, layers):
    length = len(mask)
    reached = mask.clone()
    for _ in range(layers - 1):
        further = torch.zeros_like(mask)
        for q in range(length):
            for middle in range(length):
                if reached[q, middle]:
                    further[q] |= mask[middle]
        reached = further
    return reached


@wrong("reach", "number of layers makes no difference")
def reach_mask_itself(mask, layers):
    return mask.clone()


@wrong("reach", "one layer too many")
def reach_too_far(mask, layers):
    reached = mask.float()
    for _ in range(layers):
        reached = (reached @ mask.float()).clamp(max=1)
    return reached > 0


@wrong("reach", "number of layers makes no difference")
def reach_elementwise(mask, layers):
    reached = mask
    for _ in range(layers):
        reached = reached & mask
    return reached


@wrong("reach", "counts paths")
def reach_counts(mask, layers):
    return torch.linalg.matrix_power(mask.float(), layers)


@wrong("reach", "exactly one path")
def reach_single_paths(mask, layers):
    return torch.linalg.matrix_power(mask.float(), layers) == 1


@wrong("reach", "infinitely many layers")
def reach_closure(mask, layers):
    reached = mask.float()
    for _ in range(len(mask)):
        reached = ((reached @ reached) > 0).float()
    return reached.bool()


@wrong("reach", "swapped")
def reach_transposed(mask, layers):
    return reach_by_products(mask, layers).T


@wrong("reach", "squared in every layer")
def reach_squared(mask, layers):
    reached = mask.float()
    for _ in range(layers - 1):
        reached = ((reached @ reached) > 0).float()
    return reached.bool()


# prefix_mask(length, prefix_length)


@right("prefix_mask")
def prefix_mask_filled(length, prefix_length):
    seen = torch.tril(torch.ones(length, length, dtype=torch.bool))
    seen[:, :prefix_length] = True
    return seen


@right("prefix_mask")
def prefix_mask_of_comparisons(length, prefix_length):
    q, k = torch.meshgrid(torch.arange(length), torch.arange(length), indexing="ij")
    return (k < prefix_length) | (k <= q)


@wrong("prefix_mask", "the prefix sees the target")
def prefix_mask_as_printed(length, prefix_length):
    seen = torch.ones(length, length, dtype=torch.bool)
    for row in range(prefix_length, length):
        seen[row, row + 1 :] = False
    return seen


@wrong("prefix_mask", "causal mask")
def prefix_mask_causal(length, prefix_length):
    return torch.tril(torch.ones(length, length)) == 1


@wrong("prefix_mask", "one token too long")
def prefix_mask_off_by_one(length, prefix_length):
    place = torch.arange(length)
    return (place[None, :] <= prefix_length) | (place[None, :] <= place[:, None])


@wrong("prefix_mask", "one token too short")
def prefix_mask_minus_one(length, prefix_length):
    place = torch.arange(length)
    return (place[None, :] < prefix_length - 1) | (place[None, :] <= place[:, None])


@wrong("prefix_mask", "swapped")
def prefix_mask_transposed(length, prefix_length):
    seen = torch.triu(torch.ones(length, length, dtype=torch.bool))
    seen[:prefix_length, :] = True
    return seen


@wrong("prefix_mask", "upside down")
def prefix_mask_blocked(length, prefix_length):
    blocked = torch.triu(torch.ones(length, length), diagonal=1).bool()
    blocked[:, :prefix_length] = False
    return blocked


@wrong("prefix_mask", "numbers in place of booleans")
def prefix_mask_of_ones(length, prefix_length):
    seen = torch.tril(torch.ones(length, length))
    seen[:, :prefix_length] = 1
    return seen


@wrong("prefix_mask", "a target token does not see itself")
def prefix_mask_strict(length, prefix_length):
    seen = torch.ones(length, length).tril(-1).bool()
    seen[:prefix_length, :prefix_length] = True
    return seen
