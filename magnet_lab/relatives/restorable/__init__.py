"""Restorable embeddings ("RE: A Study for Restorable Embeddings"): a sentence as one vector, and back from it.

    encoder.py    the states of a text's tokens, pooled into one vector               (Equations 1 and 2)
    decoders.py   four ways to let a decoder see that vector, one of them the gating layer    (Equations 3 to 5)
    search.py     beam search                                                         (Table 6)
    metrics.py    how much came back: ROUGE and perplexity
    training.py   masked words, restoration (Equation 6), passage retrieval
    experiments.py    the document's tables in miniature, and one it does not have: what a MAGNET vector still holds

`magnet-lab reproduce re-table2 re-table3 re-table9 re-magnet` runs them all.
"""
