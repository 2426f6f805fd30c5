"""How the package behaves in a process: imports, threads, forks, installs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import flashlib

PACKAGE = Path(flashlib.__file__).parent
SOME = "import numpy as np, flashlib; x = np.ones((70, 2, 4), np.float32)\n"
EVERY = """
for name in flashlib.available_backends():
    result = flashlib.flash_attention(x, x, x, causal=True, backend=name)
    assert abs(result.out - 1).max() < 1e-6, name
"""


def run(code, path=PACKAGE.parent, expect=0, **environment):
    """Run Python code in a process of its own, with flashlib from `path`."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(path), **environment},
        cwd=path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == expect, done.stderr
    return done.stdout


def test_import_loads_numpy_and_nothing_else():
    code = """
import sys, time
import numpy
before, start = set(sys.modules), time.perf_counter()
import flashlib
print(f"import flashlib: {1e3 * (time.perf_counter() - start):.0f} ms beyond NumPy")
new = {name.partition(".")[0] for name in set(sys.modules) - before}
foreign = new - set(sys.stdlib_module_names) - {"flashlib", "numpy"}
foreign = {name for name in foreign if not name.startswith("_")}
assert not foreign, foreign
assert not [name for name in sys.modules if "kernels" in name]
flashlib.available_backends()
assert "numba" not in sys.modules
"""
    print(run(code))


BLOCKED = {
    "blocked by a finder": """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
""",
    "blocked in sys.modules": "import sys; sys.modules['numba'] = None\n",
}
WITHOUT = """
assert flashlib.get_backend().name == "numpy"
assert "scalar" not in flashlib.available_backends()
result = flashlib.flash_attention(x, x, x, causal=True)
assert abs(result.out - 1).max() < 1e-6
try:
    flashlib.flash_attention(x, x, x, backend="scalar")
except flashlib.ArgumentError as error:
    assert "needs numba; install numba" in str(error), error
else:
    raise AssertionError("a backend without its package ran")
"""


@pytest.mark.parametrize("how", BLOCKED)
def test_without_numba(how):
    run(BLOCKED[how] + SOME + WITHOUT)


def test_with_a_numba_that_does_not_import(tmp_path):
    broken = tmp_path / "numba"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('needs an older NumPy')\n")
    shutil.copytree(PACKAGE, tmp_path / "flashlib", ignore=compiled_files)
    run(SOME + WITHOUT.replace('assert "scalar" not in', "assert 'numpy' in"), tmp_path)


def compiled_files(folder, names):
    return [name for name in names if name == "__pycache__"]


THREADS = """
from concurrent.futures import ThreadPoolExecutor
import threading
barrier = threading.Barrier(8)
def work(seed):
    random = np.random.default_rng(seed)
    q, k, v = (random.standard_normal((65, 2, 16)).astype(np.float32) for _ in range(3))
    barrier.wait()
    return (q, k, v), [
        flashlib.flash_attention(q, k, v, causal=True, backend=name)
        for name in flashlib.available_backends()
    ]
with ThreadPoolExecutor(8) as pool:
    answers = list(pool.map(work, range(8)))
for (q, k, v), results in answers:
    for name, result in zip(flashlib.available_backends(), results, strict=True):
        alone = flashlib.flash_attention(q, k, v, causal=True, backend=name)
        assert result.out.tobytes() == alone.out.tobytes(), name
        assert result.lse.tobytes() == alone.lse.tobytes(), name
"""


def test_first_kernels_from_eight_threads_at_once():
    run(SOME + THREADS)


FORK = """
import os
child = os.fork()
try:
    {every}
    right = True
except BaseException:
    right = False
if child == 0:
    os._exit(0 if right else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert right and status == 0, (right, status)
""".format(every=EVERY.replace("\n", "\n    "))

can_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@can_fork
def test_h13_fork_before_the_first_kernel():
    """A child forked after the import runs its first parallel kernel.

    Seen in numba#7872, as the other rows of tests/known_faults.
    """
    run(SOME + FORK)


@can_fork
@pytest.mark.parametrize(
    "question",
    [
        "import numba; numba.get_num_threads()",
        "import numba; numba.set_num_threads(1)",
        "from flashlib.kernels.launch import workers; workers()",
        "from flashlib.kernels.launch import limit_workers; limit_workers(2)",
    ],
)
def test_fork_after_a_question_about_threads(question):
    """Whoever asks Numba for its threads has them started, and a child has none."""
    pytest.importorskip("numba", reason="numba is not installed")
    run(SOME + question + FORK)


@can_fork
def test_fork_after_a_kernel_on_one_core():
    one_core = "flashlib.available_backends = lambda: {'numpy', 'scalar'} & set(ALL)\n"
    run(SOME + "ALL = flashlib.available_backends()\n" + one_core + EVERY + FORK)


@pytest.fixture
def read_only_install(tmp_path):
    """A copy of the package in which nobody, not even root, can make a cache."""
    site = tmp_path / "site"
    shutil.copytree(PACKAGE, site / "flashlib", ignore=compiled_files)
    folders = [site / "flashlib", *(site / "flashlib").rglob("*")]
    for folder in [folder for folder in folders if folder.is_dir()]:
        # A file of this name keeps a folder of this name from being made.
        (folder / "__pycache__").write_text("")
        folder.chmod(0o555)
    yield site
    for folder in [folder for folder in folders if folder.is_dir()]:
        folder.chmod(0o755)


def test_h32_read_only_install_without_a_home(read_only_install):
    """Where no cache can be written, kernels are compiled and the import works.

    Seen in numba#4032, numba#4908, LMCache#4597.
    """
    nowhere = "/dev/null/nowhere"
    place = f"assert flashlib.__file__.startswith({str(read_only_install)!r})\n"
    run(
        SOME + place + EVERY,
        read_only_install,
        HOME=nowhere,
        XDG_CACHE_HOME=nowhere,
        NUMBA_CACHE_DIR="",
        LOCALAPPDATA=nowhere,
    )


BLAS_THREADS = """
import hashlib, numpy as np, flashlib
random = np.random.default_rng(0)
q, k, v = (random.standard_normal((300, n, 96), np.float32) for n in (2, 1, 1))
wide = (random.standard_normal((200, 1, 300), np.float32) for _ in range(3))
calls = [(q, k, v), (q[:1], k, v), (q[:40], k, v), tuple(wide)]
calls += [tuple(x.astype(np.float64) for x in call) for call in calls]
results = [flashlib.materialized_attention(*call) for call in calls]
for name in flashlib.available_backends():
    results += [flashlib.flash_attention(*call, backend=name) for call in calls]
    for splits in (None, 1, 5):
        results += [
            flashlib.flash_attention_decode(
                q[None, :n], k[None], v[None], cache_seqlens=[300], num_splits=splits,
                backend=name,
            )
            for n in (1, 2)
        ]
for result in results:
    print(hashlib.sha256(result.out.tobytes() + result.lse.tobytes()).hexdigest())
"""


def test_the_number_of_blas_threads_changes_no_bit():
    one, two = (
        run(BLAS_THREADS, OPENBLAS_NUM_THREADS=n, OMP_NUM_THREADS=n, MKL_NUM_THREADS=n)
        for n in ("1", "2")
    )
    assert one.count("\n") > 30
    assert one == two
