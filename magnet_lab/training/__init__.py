"""How the models of this lab are trained."""
