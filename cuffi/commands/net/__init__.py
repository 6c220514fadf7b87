"""make net and make verify-net."""
