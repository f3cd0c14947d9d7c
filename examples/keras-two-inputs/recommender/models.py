"""Predict the rating that a reader gives to a book, from what they read before and from numbers about the book."""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
from keras import layers

BOOKS = 5000  # 0 is padding
HISTORY = 40  # books that the reader finished
FEATURES = 12  # numbers about the book: pages, age, price, ...


def build():
    """Return a model with two inputs, "history" and "book", and the logits of 1 to 5 stars."""
    history = keras.Input((HISTORY,), name="history", dtype="int32")
    book = keras.Input((FEATURES,), name="book")
    taste = layers.Embedding(BOOKS, 48, name="books")(history)
    taste = layers.GRU(64, name="taste")(taste)
    facts = layers.Dense(64, activation="relu", name="facts")(book)
    both = layers.concatenate([taste, facts])
    both = layers.Dense(64, activation="relu", name="match")(both)
    both = layers.Dropout(0.2, name="dropout")(both)
    return keras.Model({"history": history, "book": book}, layers.Dense(5, name="stars")(both))
