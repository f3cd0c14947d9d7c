"""Hugging Face: models of transformers, and Adam of PyTorch."""

from public.torch import inference_step, training_step
from torch import nn, optim
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel

__all__ = ["inference_step", "training_step"]


class Bert(nn.Module):
    def __init__(self, task):
        super().__init__()
        config = BertConfig(
            vocab_size=task.vocabulary, hidden_size=task.hidden, num_hidden_layers=task.layers,
            num_labels=task.classes, num_attention_heads=task.heads, intermediate_size=task.inner,
            max_position_embeddings=task.positions, hidden_dropout_prob=task.dropout[0],
            attention_probs_dropout_prob=0.0,
        )  # fmt: skip
        self.model = BertForSequenceClassification(config)

    def forward(self, tokens, segments):
        return self.model(tokens, token_type_ids=segments, attention_mask=(tokens != 0).long()).logits


class GPT2(nn.Module):
    def __init__(self, task):
        super().__init__()
        config = GPT2Config(
            vocab_size=task.vocabulary, n_embd=task.hidden, n_layer=task.layers, n_head=task.heads,
            n_inner=task.inner, n_positions=task.positions, resid_pdrop=task.dropout[0],
            embd_pdrop=task.dropout[0], attn_pdrop=0.0, use_cache=False,
        )  # fmt: skip
        self.model = GPT2LMHeadModel(config)

    def forward(self, tokens):
        """Return the logits of all positions in training, and of the last one in inference."""
        if self.training:
            return self.model(tokens).logits
        return self.model(tokens, logits_to_keep=1).logits[:, -1]


def encoder(task):
    """BertForSequenceClassification."""
    return with_adam(Bert(task), task)


def decoder(task):
    """GPT2LMHeadModel."""
    return with_adam(GPT2(task), task)


def with_adam(net, task):
    return net, optim.Adam(net.parameters(), lr=task.learning_rate)
