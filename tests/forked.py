"""Commands in processes of their own, forked from one that has imported what takes long."""

import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

import pytest

ROOT = Path(__file__).parents[1]
IMPORTED = ("magrounding.cli.train", "torch._dynamo")
"""Modules that most commands import; torch's optimizers import the second."""
SERVER = """
import gc, importlib, json, os, runpy, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
gc.freeze()
with open(0, closefd=False) as requests:
    for request in iter(requests.readline, ""):
        child = os.fork()
        if child == 0:
            break
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    else:
        sys.exit()
module, arguments, files, folder, environment = json.loads(request)
for descriptor, path in enumerate(files):
    os.dup2(os.open(path, os.O_RDWR), descriptor)
os.chdir(folder)
os.environ.clear()
os.environ.update(environment)
if module == "-c":
    code, *arguments = arguments
    sys.argv = [module, *arguments]
    exec(code, {"__name__": "__main__"})
else:
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


class Forked:
    """Runs one command after the other.

    Args:
        python: the interpreter.
        environment: variables of the process that the others are forked from.
        cwd: its folder.
        imported: modules that it imports.
    """

    def __init__(self, python=sys.executable, environment=None, cwd=None, imported=IMPORTED):
        line = [python, "-c", SERVER, *imported]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(line, env=environment, cwd=cwd, **pipes)

    def run(self, module, *arguments, cwd, env, input=""):
        """Run a module, or code ("-c"), as `subprocess.run` would with the interpreter; what it printed is text."""
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("in", "out", "err")]
            for path, content in zip(files, (input, "", ""), strict=True):
                path.write_text(content)
            arguments = [str(each) for each in arguments]
            request = module, arguments, [str(path) for path in files], str(cwd), dict(env)
            print(json.dumps(request), file=self._process.stdin, flush=True)
            code = int(self._process.stdout.readline())
            return CompletedProcess([module, *arguments], code, *(path.read_text() for path in files[1:]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate()  # closes its input, which ends it


@contextmanager
def full_disk():
    """Files longer than some bytes are refused by the system, once half of them is written."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (90, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
