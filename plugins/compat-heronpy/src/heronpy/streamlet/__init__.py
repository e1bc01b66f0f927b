"""Streamlets, with the module names of heronpy; `heron_streamlet` implements them."""
