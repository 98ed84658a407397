"""
Plans of Braid's own programs and of modules: those in a folder that was shipped, in the cache, or compiled when first
needed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .cuda.gpu import Gpu
from .group import Group, agree, same
from .plan import read_plan
from .refusal import Refusal

# From the start of the compiler; on a busy machine Node alone takes seconds.
COMPILE_SECONDS = 120
SCATTERED = ("--schedule=insertReshardingAfter",)
PROGRAMS = {
    # With get, peers would read the shard from memory that they reach, into which it would have to be copied.
    "all-gather-matmul": ("--schedule=protocol=put",),
    "all-gather-scaled-matmul": ("--schedule=protocol=put",),
    "matmul-reduce-scatter": SCATTERED,
    "scaled-matmul-reduce-scatter": SCATTERED,
    "matmul-all-reduce": SCATTERED,
}


@dataclass(frozen=True)
class Problem:
    """A program of this package, and its parameters as text."""

    program: str
    parameters: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "-".join([self.program, *(f"{name.lower()}{value}" for name, value in self.parameters)])


def plan_folder(problem: Problem, gpu: Gpu, group: Group) -> Path:
    """Collective: rank 0 compiles. Raises Refusal on every rank."""
    same(group, "the call", str(problem), "call it with the same shapes and dtypes on all ranks, in the same order")

    def find() -> str:
        if group.rank != 0:
            return ""
        profile = _profile(gpu, group.size)
        settings = [f"--set={name}={value}" for name, value in problem.parameters]
        given = [*settings, *PROGRAMS[problem.program]]
        return str(_plan(str(problem), _version(problem, profile), _source(problem), given, gpu, group.size, profile))

    found = agree(group, f"compiling {problem}", find)
    return Path(group.all_gather(found.encode())[0].decode())


@dataclass(frozen=True)
class Model:
    """A file of torch.export, and how it lies on devices."""

    file: Path
    # Of what the file computes.
    digest: str
    # A sharding plan of Braid, as JSON.
    sharding: str


def model_plans(name: str, model: Model, halves: Sequence[Sequence[str]], gpu: Gpu, devices: int) -> list[Path]:
    """
    A plan for each list of flags, compiled side by side on this rank alone. Raises Refusal.
    """
    profile = _profile(gpu, devices)
    kind = hashlib.sha256(model.sharding.encode()).hexdigest()[:8]
    sharding = model.file.with_suffix(f".{kind}.json")
    sharding.write_text(model.sharding)

    def made(flags: Sequence[str]) -> Path:
        parts = (model.digest.encode(), model.sharding.encode(), " ".join(flags).encode(), _measured(profile))
        version = hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]
        return _plan(name, version, model.file, [f"--plan={sharding}", *flags], gpu, devices, profile)

    with ThreadPoolExecutor(len(halves)) as threads:
        return list(threads.map(made, halves))


def _plan(name: str, version: str, source: Path, flags: Sequence[str], gpu: Gpu, devices: int, profile: str) -> Path:
    """One that was shipped or is in the cache, or a new one."""
    folder = f"{name}-{devices}x-sm{gpu.capability}-{gpu.multiprocessors}-{version}"
    shipped, cached = os.environ.get("BRAID_PLANS", ""), Path(cache_folder()) / folder
    if shipped and (Path(shipped) / folder / "plan.json").exists():
        return Path(shipped) / folder
    if _is_whole(cached):
        return cached
    size = [f"--gpu=capability={gpu.capability},multiprocessors={gpu.multiprocessors}"]
    schedule = ["--schedule=auto", f"--profile={profile}"]
    return _compile(name, source, [f"--devices={devices}", *flags, *size, *schedule], cached)


def _is_whole(folder: Path) -> bool:
    """False for a plan that was cut off, or that another version wrote: it is made again."""
    try:
        return (folder / "plan.json").exists() and read_plan(folder) is not None
    except (OSError, ValueError):
        return False


def _source(problem: Problem) -> Path:
    return Path(__file__).parent / "programs" / f"{problem.program}.ts"


def _version(problem: Problem, profile: str) -> str:
    """Of all that a plan is made of besides the problem and the GPU. A profile is a name or a file."""
    parts = (_source(problem).read_bytes(), " ".join(PROGRAMS[problem.program]).encode(), _measured(profile))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def _measured(profile: str) -> bytes:
    return Path(profile).read_bytes() if Path(profile).is_file() else profile.encode()


def _compile(name: str, source: Path, flags: Sequence[str], target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that it can be renamed.
    unfinished = Path(tempfile.mkdtemp(prefix=".plan-", dir=target.parent))
    try:
        command = [*compiler(), "compile", str(source), *flags, "-o", str(unfinished)]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _no_compiler(name, str(error)) from None
        if ended.returncode:
            raise _no_compiler(name, ended.stderr.strip() or f"status {ended.returncode}")
        _put(unfinished, target)
        return target
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _put(unfinished: Path, target: Path) -> None:
    """Another job may have made the same plan meanwhile, and be reading it: the first one stays."""
    if not _is_whole(target):
        shutil.rmtree(target, ignore_errors=True)
    try:
        unfinished.rename(target)
    except OSError:
        if not _is_whole(target):
            raise


def _no_compiler(name: str, found: str) -> Refusal:
    fix = "install Node and Braid, name the command in BRAID_COMPILER, or a folder of plans in BRAID_PLANS"
    return Refusal("compiler-failed", name, found, "a plan from braid compile", fix)


def _profile(gpu: Gpu, devices: int) -> str:
    """What braid or the user has measured, by name or file: the schedule is chosen with it."""
    given = os.environ.get("BRAID_PROFILE")
    if given:
        return given
    model = re.search(r"[A-Z]\d{2,3}", gpu.name)
    known = {"H200": {2: "2xH200", 4: "4xH200"}, "H100": {2: "2xH100", 8: "8xH100"}, "A100": {8: "8xA100"}, "B200": {8: "8xB200"}}
    by_count = known.get(model.group() if model else "", known["H200"])
    return by_count.get(devices, max(by_count.values()))


def compiler() -> list[str]:
    return shlex.split(os.environ.get("BRAID_COMPILER", "npx --no-install braid"))


def cache_folder() -> str:
    home = os.environ.get("XDG_CACHE_HOME")
    return str((Path(home) if home else Path.home() / ".cache") / "braid/plans")
