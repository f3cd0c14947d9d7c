"""Hugging Face: a model of transformers with its own loss, and Adam of PyTorch."""

from torch import optim
from transformers import BertConfig, BertForSequenceClassification


def encoder(task):
    """BertForSequenceClassification."""
    config = BertConfig(
        vocab_size=task.vocabulary, hidden_size=task.hidden, num_hidden_layers=task.layers, num_labels=task.classes,
        num_attention_heads=task.heads, intermediate_size=task.inner, max_position_embeddings=task.positions,
        hidden_dropout_prob=task.dropout[0], attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    net = BertForSequenceClassification(config).train()
    optimizer = optim.Adam(net.parameters(), lr=task.learning_rate)

    def step(tokens, segments, y):
        optimizer.zero_grad()
        loss = net(tokens, token_type_ids=segments, attention_mask=(tokens != 0).long(), labels=y).loss
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
