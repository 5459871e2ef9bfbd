"""Prefix LM: read what is given in both directions, write what follows from left to right.

What a text is to be continued from, its prefix, is known as a whole, so nothing is gained by hiding its later tokens
from its earlier ones. Only what is still to be written, the target, has to be causal. In the terms of
`magnet_lab.attention` the prefix is context and the target is one span at the end:

    L = - Σ_{t > k} log p(x_t | x_1 … x_k, x_{k+1} … x_{t-1})            for a prefix of k tokens

which is missing-span generation (`objectives.msg_loss`) with the span at the end. Read in this order:

    masks.py         who may look at whom in the chapter's three modes, and a mask that lets the target leak
    data.py          rows of characters, split into prefix and target; two small tasks with fresh rows without end
    model.py         the chapter's model of 670,184 parameters, and its encoder-decoder twin
    training.py      the loop, the loss of every token, and writing
    experiments.py   what the chapter says, measured

`magnet-lab reproduce prefixlm-masks prefixlm-text prefixlm-leak …` runs them (`evaluation/prefixlm_chapter.py`).

Where this differs from the chapter's code, it follows the chapter's equation: the prefix does not see the target
(`masks.printed_mask` says more), every row of a batch has its own split, and the first token after the prefix is a
target, read from the prefix's last token, as it is when the model writes (`data.printed_split` says more).
"""
