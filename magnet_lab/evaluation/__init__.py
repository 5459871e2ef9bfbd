"""What a model can do, measured: one module a table or figure of the paper."""
