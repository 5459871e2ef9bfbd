"""Table 1: chunks, names and parts of speech, read off frozen word vectors by a linear classifier (Section 4.1).

The states are made once and kept; the classifier trains on what is kept (4000 steps of 8 sentences, dropout 0.1).
"""

import torch
from torch import Tensor, nn

from magnet_lab.evaluation.data import Tagged
from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting, bootstrap
from magnet_lab.evaluation.verdicts import more_in_all

TASKS = ("chunking", "NER", "POS")


def probe(
    train: list[tuple[Tensor, list[int]]],
    test: list[tuple[Tensor, list[int]]],
    classes: int,
    *,
    steps: int = 4000,
    seed: int = 0,
) -> list[list[int]]:
    """Train a linear classifier on sentences' word vectors `(words, hidden)` and their tags; the tags of the test's."""
    torch.manual_seed(seed)
    scale = torch.cat([vectors for vectors, _ in train]).std()  # models differ in the size of their states
    classifier = nn.Sequential(nn.Dropout(0.1), nn.Linear(train[0][0].shape[1], classes))
    optimizer = torch.optim.AdamW(classifier.parameters(), lr=5e-4)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        batch = [train[place] for place in torch.randint(len(train), (8,), generator=generator).tolist()]
        vectors = torch.cat([vectors for vectors, _ in batch]) / scale
        tags = torch.tensor([tag for _, tags in batch for tag in tags])
        nn.functional.cross_entropy(classifier(vectors), tags).backward()
        optimizer.step()
        optimizer.zero_grad()
    classifier.eval()
    with torch.no_grad():
        return [classifier(vectors / scale).argmax(dim=1).tolist() for vectors, _ in test]


def accuracy(sentences: list[tuple[list[str], list[str]]]) -> float:
    """Share of words whose tag is right, over (right tags, found tags) of sentences."""
    right = sum(one == other for tags, found in sentences for one, other in zip(tags, found, strict=True))
    return 100 * right / sum(len(tags) for tags, _ in sentences)


def entity_f1(sentences: list[tuple[list[str], list[str]]]) -> float:
    """F1 over whole entities: a name counts where its words and its kind are right."""
    both = [(entities(tags), entities(found)) for tags, found in sentences]
    right = sum(len(true & found) for true, found in both)
    return 100 * 2 * right / max(1, sum(len(true) + len(found) for true, found in both))


def entities(tags: list[str]) -> set[tuple[int, int, str]]:
    """(start, stop, kind) of the names in a sentence, from IOB1 or IOB2 tags."""
    found, start, kind = set(), 0, None
    for place, tag in enumerate([*tags, "O"]):
        prefix, _, here = tag.partition("-")
        if kind is not None and (prefix != "I" or here != kind):
            found.add((start, place, kind))
            kind = None
        if kind is None and prefix != "O":
            start, kind = place, here
    return found


def _row(adapter: str | None):
    def measure(setting: Setting) -> dict[str, Figure]:
        lab = setting.lab(adapter)
        train, test = setting.data.tagged()
        train, test = train[: setting.some(3000, 12)], test[: setting.some(1000, 6)]
        vectors = {id(part): lab.encode_words([s.words for s in part], progress=True) for part in (train, test)}
        figures = {}
        for task in TASKS:
            names = sorted({tag for sentence in (*train, *test) for tag in sentence.tags[task]})
            found = probe(
                with_tags(vectors[id(train)], train, task, names),
                with_tags(vectors[id(test)], test, task, names),
                len(names),
                steps=setting.some(4000, 20),
                seed=setting.seed,
            )
            both = [
                (sentence.tags[task], [names[tag] for tag in tags]) for sentence, tags in zip(test, found, strict=True)
            ]
            figures[task] = bootstrap(both, accuracy, draws=200)
            if task == "NER":
                figures["NER, F1 of names"] = bootstrap(both, entity_f1, draws=200)
        return figures

    return measure


def with_tags(vectors: list[Tensor], sentences: list[Tagged], task: str, names: list[str]):
    numbers = {name: number for number, name in enumerate(names)}
    return [
        (states, [numbers[tag] for tag in sentence.tags[task]])
        for states, sentence in zip(vectors, sentences, strict=True)
    ]


def _better(one: str, other: str):
    return lambda rows: more_in_all(rows, one, other, TASKS)


EXPERIMENT = Experiment(
    id="table1",
    title="Word-level tasks: accuracy of a linear probe (%)",
    rows={
        "base": _row(None),
        "LLM2Vec": _row("llm2vec"),
        "LLM2Vec [MNTP]": _row("mntp"),
        "MAGNET": _row("magnet"),
    },
    claims=[
        Claim("MAGNET's word vectors beat the base model's in all three tasks", _better("MAGNET", "base")),
        Claim("… and those of LLM2Vec after MNTP alone", _better("MAGNET", "LLM2Vec [MNTP]")),
        Claim("LLM2Vec is better after MNTP than after SimCSE as well", _better("LLM2Vec [MNTP]", "LLM2Vec")),
    ],
)
