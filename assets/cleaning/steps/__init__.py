"""The steps of cleaning, one module each; `assets.cleaning.pipeline` lists them in their order."""
