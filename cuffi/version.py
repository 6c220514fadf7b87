"""The version of both distributions, cuffi-nets and cuffi. No other file has it."""

VERSION = "0.2.0"
