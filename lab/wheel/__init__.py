"""A wheel of the toolkit: checks by the usual tools, and trials with several Pythons and torches."""
