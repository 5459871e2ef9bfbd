"""UniLMv2: a masked language model that tells its hidden tokens all at once and step by step, in one forward pass.

BERT hides some tokens of a text and predicts each from what is left (autoencoding, AE). XLNet predicts the hidden
tokens one after the other, each from the context and from those told before (autoregressive, AR). UniLMv2 predicts
them in steps of one token or of one stretch of tokens (partially autoregressive, PAR), and does AE and PAR in one
forward pass: beside the conventional masks [M] stand pseudo masks [P], and the attention mask lets nobody see what is
yet to be told.

Read in this order:

    vocabulary.py    the special tokens
    masking.py       which tokens are hidden and in which order they are told (Algorithm 1, Table 1)
    layout.py        the row of tokens for one pass, and who may look at whom in it (Figures 4 and 5)
    cloze.py         what the one pass replaces: a row of its own for every step (Figure 3)
    model.py         a small BERT with relative position bias (Sections 2.1, 2.2 and 4.1)
    objectives.py    the losses of AE and PAR from one pass (Equations 3, 6 and 7)
    proof.py         one pass is many, and nothing leaks (Section 3.2)
    training.py      gradient steps
    finetuning.py    a label, a span, a written text from the same model (Section 3.4)
    decoding.py      beam search
    little_world.py  stories and questions that a small model can learn in seconds
    experiments.py   Table 6 in miniature (Section 4.6)

`magnet-lab reproduce unilmv2-onepass unilmv2-tokens unilmv2-leaks unilmv2-table6` runs the proof and the experiments.
"""
