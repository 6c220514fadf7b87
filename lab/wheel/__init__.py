"""A wheel of the toolkit: what the field's checkers say of it, and where it was tried."""
