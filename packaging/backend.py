"""pip's way into setup.py: setuptools' own, and setup.py is told whether an install is editable."""

import os

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    os.environ["CUFFI_EDITABLE"] = "1"
    return build_meta.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    os.environ["CUFFI_EDITABLE"] = "1"
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
