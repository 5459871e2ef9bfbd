"""Table 3: do texts of one topic lie together? V-measure of k-means against the topics."""

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import v_measure_score

from magnet_lab.evaluation.experiment import Claim, Experiment, Figure, Setting
from magnet_lab.evaluation.verdicts import more_in_all

# Table 8; for sets of other texts, the one for news articles.
INSTRUCTION = "Identify the topic or theme of the given news articles"
INSTRUCTIONS = {
    "BiorxivClustering": "Identify the main category of Biorxiv papers based on the titles",
    "MedrxivClustering": "Identify the main category of Medrxiv papers based on the titles",
}


def v_measures(vectors: np.ndarray, labels: list[str], seeds: range) -> list[float]:
    """V-measure times 100 of k-means with as many clusters as there are labels, by seed."""
    found = []
    for seed in seeds:
        clusters = MiniBatchKMeans(len(set(labels)), n_init=3, random_state=seed, batch_size=500).fit_predict(vectors)
        found.append(100 * v_measure_score(labels, clusters))
    return found


def _row(adapter: str | None, pooling: str):
    def measure(setting: Setting) -> dict[str, Figure]:
        lab, figures = setting.lab(adapter), {}
        for task, (labels, texts) in setting.data.topics(setting.some(2000, 60)).items():
            instruction = INSTRUCTIONS.get(task, INSTRUCTION)
            vectors = lab.encode(texts, pooling=pooling, instruction=instruction, truncate=True, progress=True).numpy()
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            # k-means falls out a little differently each time: the middle 95 % over its seeds.
            values = v_measures(vectors, labels, range(setting.seed, setting.seed + setting.some(10, 2)))
            low, high = np.percentile(values, [2.5, 97.5])
            figures[task] = Figure(float(np.mean(values)), float(low), float(high), len(texts))
        return figures

    return measure


def _better(one: str, other: str):
    return lambda rows: more_in_all(rows, one, other, rows.get(one, {}))


EXPERIMENT = Experiment(
    id="table3",
    title="Clustering: v-measure (x 100)",
    rows={
        "base": _row(None, "last"),
        "Echo": _row(None, "echo"),
        "LLM2Vec": _row("llm2vec", "mean"),
        "MAGNET": _row("magnet", "last"),
        "MAGNET, mean pooling": _row("magnet", "mean"),
    },
    claims=[
        Claim("MAGNET clusters better than LLM2Vec in every set", _better("MAGNET", "LLM2Vec")),
        Claim("MAGNET clusters better than Echo in every set", _better("MAGNET", "Echo")),
    ],
)
