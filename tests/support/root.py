"""The folder of the checkout. This module imports nothing of the toolkit."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
