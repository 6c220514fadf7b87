"""Which files of the package `cuffi` belong to which of the two distributions.

cuffi-nets has what is pure Python: models, scripts, the command. cuffi has all other files, and needs cuffi-nets.
"""

# Names in the folder cuffi/. setup.py leaves them out, packaging/nets/setup.py takes them.
NETS = (
    "__init__.py", "__main__.py", "backends.py", "base", "caffe.py", "caffe_files", "command_line.py", "commands",
    "dnn.py", "folders.py", "installed.py", "nets", "own_python.py", "packages.py", "py.typed", "train.py",
    "version.py",
)  # fmt: skip
# What a build leaves in these folders.
IGNORED = ("__pycache__", "*.pyc", "*.partial", ".*")
# The messages of stock Caffe and of the types of forks, which make writes.
MESSAGES = "nets/net/_caffe.desc"


def is_of_nets(path: str) -> bool:
    """Is this path in the folder cuffi/, such as base/files.py, one of cuffi-nets?"""
    return path.split("/")[0] in NETS
