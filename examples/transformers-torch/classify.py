"""Classify sentences of token ids as negative, neutral or positive."""

from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

CONFIG = Path(__file__).parent / "encoder"


def build():
    """Return the classifier with initial weights. Nothing is downloaded."""
    return AutoModelForSequenceClassification.from_config(AutoConfig.from_pretrained(CONFIG))


@torch.inference_mode()
def classify(model, input_ids):
    """Return one label for each row of token ids, in which 0 is padding."""
    logits = model(input_ids=input_ids, attention_mask=(input_ids != 0).long()).logits
    return [model.config.id2label[label] for label in logits.argmax(1).tolist()]


if __name__ == "__main__":
    print(classify(build().eval(), torch.randint(1, 30522, (2, 16))))
