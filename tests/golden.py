"""Golden digests: what the package plays and learns, number by number, so that a change of its code moves none of it.

`python -m tests.golden` compares with `golden.json` and names each digest that differs; words choose cases by a part of
their names. With `--write` it records them anew: only with a line in the changelog under "Numbers that change", and for
games together with a new version of their ids.

Games and settings are the same everywhere. The last bits of weights depend on the processor and on torch, which the
file names: on others, numbers beside each digest are compared instead, with a tolerance.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from safetensors.numpy import load_file

import magrounding as mg
from magrounding.experiment.config import RunConfig, make_config, read_config
from magrounding.experiment.curriculum import run_curriculum
from magrounding.experiment.phase import EvaluationConfig, Phase, Promotion, Ramp
from magrounding.extensions.lge.drrn_learner import DrrnLearnerConfig
from magrounding.extensions.lge.guide import Guide, save_guide
from magrounding.extensions.lge.guide.encoder import HashedEncoder
from magrounding.extensions.lge.learner import LgeLearnerConfig
from magrounding.pretrained import find_run, pretrained_names
from magrounding.progress import Display
from magrounding.registry import PRESETS
from magrounding.teams.evaluate import OTHER_GAME, TRUE_MANUAL, evaluate
from magrounding.training.algorithm import AlgorithmConfig
from magrounding.training.imitation import ImitationConfig
from magrounding.training.impala import ImpalaConfig
from magrounding.training.ppo import PPOConfig
from magrounding.training.qmix import QmixConfig
from tests.envs import episode_digest
from tests.tiny_rooms import SPEC, TinyRooms

GOLDEN = Path(__file__).with_suffix(".json")
PINNED = {
    "OMP_NUM_THREADS": "1",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "COMPATIBLE",
}
"""Environment of the processes that compute: the same instructions on any processor that has them."""
TOLERANCE = 1e-3
"""Relative, of numbers on another processor."""
Found = str | list[Any]
"""A digest; of what depends on the processor with numbers behind it."""


class Rooms:
    """Tiny text rooms as an environment of their own: the text worlds of the package need Java or large files."""

    def describe(self) -> Any:
        return SPEC

    def make_env(self, render_mode: str | None = None) -> TinyRooms:
        return TinyRooms()


def digest_of(*parts: Any) -> str:
    """Of arrays, texts and what JSON can hold."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray | np.generic):
            total.update(f"{part.shape}{part.dtype}".encode() + np.ascontiguousarray(part).tobytes())
        else:
            total.update(json.dumps(part, sort_keys=True, default=str).encode())
    return total.hexdigest()[:16]


# Worlds: one game after another as PettingZoo has them, with texts; batches are in `episode_digest`.

WORLDS = {
    "rtfm": [{"task": "nl", "layout": "merged"}, {"task": "group", "omission": 0.5, "decoys": 0.5}],
    "ma_rtfm": [
        {"stage": "s6", "agents": 2},
        {"stage": "s6", "agents": 3, "split": "eval_construction"},
        {"stage": "s6", "split": "eval_minimal"},
        {"stage": "s5", "layout": "stream"},
    ],
    "rock_paper_scissors": [{"task": "permutation", "split": "eval"}],
    "messenger": [{"stage": "s3", "layout": "stream"}, {"stage": "s2", "game_id": True}],
    "ma_messenger": [{"stage": "s4", "agents": 3, "omission": 0.5}],
}
SIMULATORS = {
    "babyai": [
        {"level": "GoToObj"},
        {"level": "BossLevel", "displacement": True, "split": "valid"},
        {"level": "PutNextLocal", "fast_view": False},
    ],
    "nethack": [{"crop": 9, "characters": True, "colours": True, "level": True}, {"task": "score"}],
    "touchdown": [{}, {"patch": 4, "turned": True, "manual_stop": True, "split": "test"}],
}


def plays(id: str, options: Mapping[str, Any], games: int = 3, most: int = 60) -> str:
    """Some games of actions by chance: what every agent gets and sees, in arrays and in words."""
    env, draws, parts = mg.make(id, render_mode="ansi", **options), np.random.RandomState(0), []
    parts.append(env.spec.words)
    for game in range(games):
        seen, _ = env.reset(seed=game)
        for _ in range(most):
            for agent in sorted(seen):
                parts += [each for name, array in sorted(seen[agent].items()) for each in (name, np.asarray(array))]
            parts.append(env.render())
            if not env.agents:
                break
            possible = {agent: np.flatnonzero(seen[agent]["action_mask"]) for agent in env.agents}
            seen, *results, infos = env.step({agent: int(draws.choice(each)) for agent, each in possible.items()})
            won = {agent: bool(info.get("won", False)) for agent, info in infos.items()}
            parts += [{agent: str(each[agent]) for agent in each} for each in (*results, won)]
    env.close()
    return digest_of(*parts)


def batch(name: str) -> str:
    """A batch of eight games, by `episode_digest`."""
    id, options = episode_digest.CASES[name]
    return episode_digest.digest(mg.make_vec(id, 8, **options), 0, 200)


def preset(name: str, env: str) -> str:
    """All settings of a preset, for every agent that has one of its own there."""
    agents = {agent for each in PRESETS.values() if (each.name, each.env) == (name, env) for agent in each.agents}
    return digest_of([make_config(env, agent, preset=name).digest for agent in (None, *sorted(agents))])


# Learners: ten updates of next to nothing.

B, UNROLL = 4, 5
TXT2PI = {
    "channels": (4, 4),
    "embedding": 6,
    "goal_hidden": 3,
    "inventory_hidden": 3,
    "document_hidden": 4,
    "head_width": 6,
}
RELREAD = {"hidden": 24, "top": 16, "pair_hidden": 8, "message": 6, "entity_hidden": 8, "features": 6}
EMMA = {"width": 16, "maps": 4, "hidden": 8, "embedding": 8}
SIR = {"channels": [6, 8, 8, 10], "embedding": 7, "hidden": 6, "width": 16}
VIEW = {"embedding": 6, "role": 4, "symbol_hidden": 8, "features": 4, "hidden": 12, "head": 8}
SMALL_BABYAI = {"words": 8, "channels": 8, "memory": 8, "head": 8}
QMIX = {"embedding": 6, "maps": 4, "hidden": 12}
CHOICES = {"embedding": 8, "states": 12, "role": 6, "hidden": 12}
DRRN = {"vocabulary": "words", "embedding": 8, "hidden": 12}
RATES = {"unroll": UNROLL, "learning_rate": 0.003, "warm_up": 40, "anneal_steps": 160}
WEIGHTS = {"modelling": 0.1, "division": 0.1}
V_TRACE = ImpalaConfig(unroll=UNROLL, learning_rate=0.003, epsilon=1e-3, anneal_steps=400)
PPO = PPOConfig(**RATES, epochs=2, minibatches=2, weights=WEIGHTS)
IMITATE = ImitationConfig(**RATES, epochs=2, minibatches=2, teacher_steps=120, weights=WEIGHTS, cost_to_go=1.0)
CLONE = ImitationConfig(**RATES, epochs=1, minibatches=1, demonstrations=12, carry_memory=True)
Q = QmixConfig(
    unroll=UNROLL, batch=4, replay_steps=200, learning_rate=0.003, state_maps=4, hypernetwork=8, exploration=100
)
SEVERAL = DrrnLearnerConfig(unroll=UNROLL, batch=8, replay_transitions=100, learning_rate=0.003, exploration=100)
GUIDED = LgeLearnerConfig(unroll=UNROLL, batch=8, replay_transitions=100, guidance="inc", guidance_steps=150)

RTFM = "ma_rtfm", "s2", {"agents": 2, "max_cycles": 12}
MESSENGER, BABYAI = (
    ("messenger", "s2", {"max_cycles": 12}),
    ("babyai", "GoToLocal", {"max_cycles": 12, "displacement": True}),
)
TEAM = "ma_messenger", "s3", {"agents": 2, "max_cycles": 12}
WALKS = "touchdown", "", {"patch": 8, "turned": True, "max_cycles": 8}
NETHACK = "nethack", "silg", {"crop": 9, "characters": True, "level": True, "max_cycles": 12}
ROOMS = "tiny_rooms", "", {}

LEARNERS: dict[str, tuple[Any, str, AlgorithmConfig, dict[str, Any], dict[str, Any]]] = {
    "V-trace, txt2pi": (RTFM, "txt2pi", V_TRACE, TXT2PI, {}),
    "V-trace, txt2pi, shared": (RTFM, "txt2pi", V_TRACE, TXT2PI, {"share_parameters": True, "team_reward": 0.5}),
    "V-trace, EnDi": (RTFM, "endi_dis", V_TRACE, TXT2PI, {}),
    "V-trace, sir": (MESSENGER, "sir", V_TRACE, SIR, {}),
    "V-trace, recurrent": (BABYAI, "babyai_small", V_TRACE, SMALL_BABYAI, {}),
    "PPO, relread": (RTFM, "relread", PPO, {**RELREAD, "phrases": True}, {"team_reward": 0.5}),
    "PPO, relread, shared": (RTFM, "relread", PPO, RELREAD, {"share_parameters": True}),
    "PPO, from a trained team": (
        ("ma_rtfm", "s5", {"agents": 2, "max_cycles": 12}), "relread", PPO, {},
        {"initial": "pretrained:ma_rtfm-s5-2agents"},
    ),
    "PPO, film": (RTFM, "film", PPO, TXT2PI, {}),
    "PPO, EnDi": (RTFM, "endi_dis_relread", PPO, RELREAD, {}),
    "PPO, EnDi on emma": (TEAM, "endi_num_emma", PPO, EMMA, {}),
    "PPO, EnDi, shared": (RTFM, "endi_num", PPO, TXT2PI, {"share_parameters": True}),
    "PPO, emma": (MESSENGER, "emma", PPOConfig(**RATES, weights={"contrast": 1.0}, normalised_returns=True), EMMA, {}),
    "PPO, recurrent": (BABYAI, "viewread", PPOConfig(**RATES, segment=UNROLL), {**VIEW, "places": True}, {}),
    "PPO, babyai": (BABYAI, "babyai_large", PPOConfig(**RATES, clip_values=True), SMALL_BABYAI, {}),
    "PPO, nethack": (NETHACK, "viewread", PPO, {**VIEW, "remember": False, "centred": True, "places": True}, {}),
    "PPO, touchdown": (WALKS, "panoread", PPO, {"embedding": 6, "sectors": 4, "hidden": 8, "sentences": 4}, {}),
    "PPO, choices": (ROOMS, "choiceread", PPO, CHOICES, {}),
    "PPO, any fields": (RTFM, "fieldread", PPO, {"embedding": 6, "channels": 4, "width": 12}, {}),
    "imitation, relread": (RTFM, "relread", IMITATE, RELREAD, {}),
    "imitation, relread, shared": (RTFM, "relread", IMITATE, RELREAD, {"share_parameters": True}),
    "imitation, EnDi": (RTFM, "endi_dis_relread", IMITATE, RELREAD, {}),
    "imitation, EnDi, shared": (TEAM, "endi_dis_emma", IMITATE, EMMA, {"share_parameters": True}),
    "imitation, reasons and ramps": (
        RTFM, "txt2pi", ImitationConfig(**RATES, bf16=True, teacher_noise=0.2),
        {**TXT2PI, "channels": (4, 4, 4, 4), "reasons": True},
        {"ramps": {"omission": Ramp(1.0, 0.0, over=100, hold=40)}},
    ),
    "imitation, roll-outs": (RTFM, "conv", ImitationConfig(**RATES, oracle="rollout"), TXT2PI, {"frozen": ("words",)}),
    "imitation, game id": (MESSENGER, "emma_game_id", IMITATE, EMMA, {}),
    "imitation, recurrent": (BABYAI, "viewread", CLONE, VIEW, {}),
    "imitation, choices": (ROOMS, "choiceread", IMITATE, CHOICES, {}),
    "QMIX, recurrent, shared": (RTFM, "qmix", Q, QMIX, {}),
    "QMIX, MESSENGER": (TEAM, "qmix", QmixConfig(**{**vars(Q), "team": "mean", "trace": 0.8}), QMIX, {}),
    "QMIX, relread": (RTFM, "qmix_relread", Q, {}, {}),
    "DRRN": (ROOMS, "drrn", SEVERAL, DRRN, {}),
    "DRRN, bag": (ROOMS, "drrn_bow", SEVERAL, DRRN, {}),
    "LGE": (ROOMS, "lge", GUIDED, {**DRRN, "k": 2}, {}),
}  # fmt: skip


def learns(world: Any, agent: str, learner: AlgorithmConfig, network: dict[str, Any], changes: dict[str, Any]) -> Found:
    """Digest of the weights after ten updates, and their sums."""
    of_phase = {name: changes[name] for name in ("ramps", "frozen") if name in changes}
    of_run = {name: value for name, value in changes.items() if name not in of_phase}
    if world is ROOMS and "tiny_rooms" not in mg.ENVS:
        mg.register_env(mg.EnvEntry("tiny_rooms", "tests.golden:Rooms"))
    with tempfile.TemporaryDirectory() as folder:
        if agent == "lge":
            torch.manual_seed(3)
            save_guide(Path(folder) / "guide", Guide(HashedEncoder(buckets=512, width=8, hidden=8)), {})
            network = {**network, "guide": str(Path(folder) / "guide")}
        phase = Phase(learner, Promotion(steps=10 * B * learner.unroll), num_envs=B, **of_phase)
        settings = in_world(world, agent=agent, phases={"*": (phase,)}, network=network, **of_run)
        return weights_after(settings, Path(folder) / "run")


def in_world(world: Any, **changes: Any) -> RunConfig:
    """A run in a stage of an environment, with options."""
    env, stages, options = world
    agents = options.get("agents", 1)
    options = {name: value for name, value in options.items() if name != "agents"}
    stages = (stages,) if isinstance(stages, str) else stages
    sets = tuple(mg.ENVS[env].evaluation.sets_of(stages[0]))[:1]
    evaluation = EvaluationConfig(
        report_games=4, selection_set=sets[0], watched_sets=sets, stage_sets=sets, final_sets=sets, read_always=False
    )
    return RunConfig(env=env, agents=agents, stages=stages, env_options=options, evaluation=evaluation, **changes)


def train(settings: RunConfig, folder: Path, *, resume: bool = False) -> None:
    """Train the only seed, without a report."""
    run = partial(run_curriculum, settings, folder, device="cpu", threads=1, trackers=(), display=quiet())
    if not resume:
        run(seeds=())
    run(seeds=settings.seeds, resume=True)


def quiet() -> Display:
    return Display(Console(file=io.StringIO()))


def weights_after(settings: RunConfig, folder: Path) -> Found:
    train(settings, folder)
    return weights_in(folder)


def weights_in(folder: Path) -> Found:
    """Digest of all weights that a run has saved, and two sums of each file."""
    parts, sums = [], []
    for path in sorted(folder.rglob("agent_*.safetensors")):
        tensors = sorted(load_file(path).items())
        parts += [path.relative_to(folder).as_posix(), *(part for named in tensors for part in named)]
        flat = np.concatenate([array.astype(np.float64).ravel() for _, array in tensors])
        sums += [float(np.abs(flat).sum()), float(flat @ np.cos(np.arange(len(flat))))]
    assert parts, f"no weights in {folder}"
    return [digest_of(*parts), *sums]


# Runs: two stages of two phases, and the same once more, killed in its midst and resumed.


def of_two_stages(save_every: float) -> RunConfig:
    phases = Phase(IMITATE, Promotion(steps=200), num_envs=B), Phase(PPO, Promotion(steps=200), num_envs=B)
    world = "ma_rtfm", ("s1", "s3"), {"agents": 2, "max_cycles": 12}
    return in_world(world, agent="relread", phases={"*": phases}, network=RELREAD, save_every=save_every)


def run_of_two_stages() -> Found:
    with tempfile.TemporaryDirectory() as folder:
        return weights_after(of_two_stages(120.0), Path(folder) / "run")


def run_killed_and_resumed() -> Found:
    """Killed as soon as the second phase of the first stage is at work."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        child = os.fork()
        if not child:
            try:
                train(of_two_stages(0.0), folder)
            finally:
                os._exit(1)
        while not list(folder.rglob("agent_*.safetensors")):
            assert os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None, "it ended before"
            time.sleep(0.002)
        time.sleep(0.2)
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert not list(folder.rglob("s3/agent_*")), "the run was over before it was killed"
        train(read_config(folder), folder, resume=True)
        return weights_in(folder)


def team_plays(name: str) -> Found:
    """Twenty games of each evaluation set: digest of all actions and results, and how many were won."""
    settings, team = read_config(find_run(f"pretrained:{name}")), mg.load_team(f"pretrained:{name}")
    stage, parts, won = settings.stages[-1], [], []
    for each in settings.entry.evaluation.sets_of(stage):
        options = settings.resolve().stages[stage].sets[each].options
        vec = mg.make_vec(settings.env, 20, **options)
        actor, open_rows = team.for_games(vec), np.ones(20, np.bool_)
        seen, info = vec.reset(seed=3 * 2**40)
        memory, wins = actor.initial_memory(20), 0
        while open_rows.any():
            actions, memory = actor.act(seen, memory, info, greedy=True, rows=np.flatnonzero(open_rows))
            seen, rewards, *_, info = vec.step(actions)
            parts += [each, actions, rewards[open_rows]]
            wins += int((info["won"] & open_rows).sum())
            open_rows &= ~info["done"]
        won.append(wins)
    options = settings.resolve().stages[stage].sets[settings.entry.evaluation.reading_set].options
    for manual in (TRUE_MANUAL, OTHER_GAME):
        evaluation = evaluate(team, settings.env, options, 20, seed=1, greedy=False, manual=manual, diagnose=True)
        parts += [evaluation.won, evaluation.length, evaluation.returns]
        won.append(int(evaluation.won.sum()))
    return [digest_of(*parts), *won]


CASES: dict[str, Callable[[], Found]] = {
    **{f"team: {name}": partial(team_plays, name) for name in pretrained_names()},
    "run: two stages": run_of_two_stages,
    "run: two stages, killed and resumed": run_killed_and_resumed,
    **{f"learner: {name}": partial(learns, *case) for name, case in LEARNERS.items()},
    **{
        f"{kind}: {id} {' '.join(map(str, options.values()))}".strip(): partial(plays, id, options)
        for kind, ids in (("simulator", SIMULATORS), ("games", WORLDS))
        for id, several in ids.items()
        for options in several
    },
    **{f"batch: {name}": partial(batch, name) for name in episode_digest.CASES},
    "splits": lambda: digest_of(episode_digest.split_digests()),
    **{
        f"preset: {name} {env}": partial(preset, name, env)
        for name, env in sorted({(p.name, p.env) for p in PRESETS.values()})
    },
}


def machine() -> dict[str, str]:
    """What the last bits of weights depend on, and the versions of simulators."""
    cpu = Path("/proc/cpuinfo")
    lines = [line.partition(":") for line in cpu.read_text().splitlines()] if cpu.exists() else []
    entries = {key.strip(): value.strip() for key, _, value in lines}
    names = "vendor_id", "cpu family", "model", "model name"
    return {
        "processor": ", ".join(entries[name] for name in names if name in entries) or platform.processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        **{name: version(name) for name in ("torch", "numpy", "minigrid", "nle")},
    }


def differs(found: Found, golden: Found | None, same_machine: bool) -> bool:
    """Compare digests; on another machine than the one that has recorded them the numbers, where there are some."""
    if found == golden or same_machine or isinstance(found, str) or not isinstance(golden, list):
        return found != golden
    return len(found) != len(golden) or not np.allclose(found[1:], golden[1:], rtol=TOLERANCE, atol=TOLERANCE)


def found(name: str) -> tuple[Found, float]:
    """What a case gives now, and the seconds of a core that it took; an error is no digest, and names itself."""
    torch.set_num_threads(1)
    began = time.process_time()
    try:
        return CASES[name](), time.process_time() - began
    except Exception as error:
        return f"{type(error).__name__}: {error}", time.process_time() - began


def find_all(pool: ProcessPoolExecutor, names: list[str]) -> Iterator[tuple[str, Found, float]]:
    """(case, what it gives, seconds) in the order in which they are ready."""
    waiting = {pool.submit(found, name): name for name in names}
    for each in as_completed(waiting):
        yield waiting[each], *each.result()


def main() -> int:
    """Compare or write; the exit code is 1 where a digest differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("cases", nargs="*", help="parts of the names of cases; none: all")
    parser.add_argument("--write", action="store_true", help="record what is found")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", action="store_true", help="show what each case took")
    arguments = parser.parse_args()
    recorded = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {"machine": {}, "digests": {}}
    golden, results = recorded["digests"], {}
    names = [name for name in CASES if not arguments.cases or any(part in name for part in arguments.cases)]
    os.environ.update(PINNED)
    with ProcessPoolExecutor(arguments.processes, get_context("spawn")) as pool:
        here = pool.submit(machine).result()
        for name, result, seconds in find_all(pool, names):
            results[name] = result
            told = (
                f"differs: {golden.get(name)} → {result}"
                if differs(result, golden.get(name), recorded["machine"] == here)
                else "same"
            )
            if arguments.seconds or told != "same":
                print(f"{name} ({seconds:.1f} s): {told}", flush=True)
    if arguments.write:
        write(here, {name: results.get(name, golden.get(name)) for name in CASES if name in results or name in golden})
        return 0
    if recorded["machine"] != here:
        print(
            f"Recorded on {recorded['machine']}, this is {here}: digests of weights that differ count as the same "
            "where their sums are almost equal."
        )
    different = [name for name in names if differs(results[name], golden.get(name), recorded["machine"] == here)]
    gone = [] if arguments.cases else sorted(golden.keys() - CASES.keys())
    print(
        f"{len(names) - len(different)} of {len(names)} digests are as recorded.",
        *(f"No longer there: {name}." for name in gone),
    )
    return int(bool(different or gone))


def write(here: dict[str, str], digests: dict[str, Found]) -> None:
    """One line for each digest."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(result)}" for name, result in digests.items())
    text = f'{{\n "machine": {json.dumps(here)},\n "digests": {{\n{lines}\n }}\n}}\n'
    GOLDEN.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
