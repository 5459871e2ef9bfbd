"""Text in, rows of tokens out."""
