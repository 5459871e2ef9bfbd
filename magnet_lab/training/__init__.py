"""Training: a recipe in, an adapter out."""
