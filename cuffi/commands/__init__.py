"""The command `cuffi`: main.py runs it, table.py lists its commands, run.py starts each."""
