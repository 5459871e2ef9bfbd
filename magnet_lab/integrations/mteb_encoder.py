"""mteb, the benchmark of Tables 2 and 3, on the model in memory:

    mteb.evaluate(MagnetEncoder(lab), mteb.get_tasks(tasks=["STSBenchmark"]))

A task says what its texts are for; the instruction that the paper has for that is put before them.
"""

import hashlib
from pathlib import Path

import torch
from torch import Tensor

from magnet_lab.integrations import needs
from magnet_lab.model import Magnet

with needs("mteb"):
    from mteb.models import ModelMeta
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.types import PromptType

# Table 8. mteb looks for a task's name first, then for its type: "STS" is every STS task.
TABLE_8 = {
    "STS": "Retrieve semantically similar text",
    "BiorxivClusteringP2P": "Identify the main category of Biorxiv papers based on the titles and abstracts",
    "BiorxivClusteringS2S": "Identify the main category of Biorxiv papers based on the titles",
    "TwentyNewsgroupsClustering": "Identify the topic or theme of the given news articles",
    "MedrxivClusteringP2P": "Identify the main category of Medrxiv papers based on the titles and abstracts",
    "MedrxivClusteringS2S": "Identify the main category of Medrxiv papers based on the titles",
}


class MagnetEncoder(AbsEncoder):
    """A `Magnet` as mteb 2 takes it; its vectors are those of `Magnet.encode`, compared by their cosine.

    The instruction is Table 8's where the table has the task, else mteb's own for it; a document that is to be found
    gets the one of training, since the task's speaks of the query. Texts are cut to the model's length, as benchmarks
    do. `encode_kwargs={"batch_size": …}` changes nothing: `Magnet.encode` makes its batches by tokens.
    """

    # mteb keeps its first versions of the clustering tasks, which the paper used, beside faster ones named .v2.
    prompts_dict = TABLE_8 | {f"{task}.v2": instruction for task, instruction in TABLE_8.items() if task != "STS"}

    def __init__(self, lab: Magnet, *, pooling: str = "last"):
        """Wrap a model.

        Args:
            pooling: "last", "mean" or "echo", as in `Magnet.encode`.

        Raises:
            ValueError: for an unknown pooling.
        """
        self.lab = lab
        self.pooling = pooling
        # mteb keeps results by name and revision and does not measure again what it has: an adapter that was trained
        # again must have another revision, so that is made from what the model says.
        vector = lab.encode(["What does this model say?"], pooling=pooling)
        names = (Path(lab.name).name, Path(lab.adapter or "base").name, pooling)
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": "magnet-lab/" + "-".join(names),
                "revision": hashlib.sha256(vector.numpy().tobytes()).hexdigest()[:40],
                "max_tokens": lab.max_length,
                "embed_dim": vector.shape[1],
            }
        )

    def encode(self, inputs, *, task_metadata, hf_split, hf_subset, prompt_type=None, **kwargs) -> Tensor:
        """The vectors of all texts of a task's batches, `(texts, hidden)`; called by mteb.

        An empty text, which some data sets hold, has the vector 0 and so the cosine 0 with everything.
        """
        texts = [text for batch in inputs for text in batch["text"]]
        written = [bool(text.strip()) for text in texts]
        is_document = prompt_type is PromptType.document
        found = self.lab.encode(
            [text for text, is_written in zip(texts, written, strict=True) if is_written],
            instruction=None if is_document else self.get_instruction(task_metadata, prompt_type),
            pooling=self.pooling,
            truncate=True,
            progress=kwargs.get("show_progress_bar", False),
        )
        vectors = torch.zeros(len(texts), found.shape[1])
        vectors[torch.tensor(written, dtype=torch.bool)] = found
        return vectors
