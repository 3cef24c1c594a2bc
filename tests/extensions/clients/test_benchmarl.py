"""BenchMARL itself trains on our task."""

import warnings
from unittest.mock import patch

import pytest

from magrounding.errors import ConfigurationError

pytest.importorskip("benchmarl", reason="BenchMARL is not installed: make test-clients")
pytestmark = pytest.mark.filterwarnings("ignore")  # TorchRL's and BenchMARL's own, of parts that they have deprecated

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from benchmarl.algorithms import IppoConfig, IqlConfig
    from benchmarl.experiment import Experiment, ExperimentConfig
    from benchmarl.models.mlp import MlpConfig

    from magrounding.extensions.clients.benchmarl import GroundedTask

OPTIONS = {"stage": "s4", "reading": "kind", "agents": 3, "death": "individual", "max_cycles": 10}


@pytest.mark.parametrize("algorithm", [IppoConfig, IqlConfig])
def test_an_experiment_runs_collects_learns_and_evaluates(algorithm, tmp_path):
    config = ExperimentConfig.get_from_yaml()
    config.prefer_continuous_actions = config.render = config.create_json = False
    config.loggers, config.save_folder, config.max_n_iters = [], str(tmp_path), 2
    config.on_policy_collected_frames_per_batch = config.off_policy_collected_frames_per_batch = 64
    config.on_policy_n_envs_per_worker = config.off_policy_n_envs_per_worker = 4
    config.on_policy_minibatch_size, config.on_policy_n_minibatch_iters = 32, 1
    config.off_policy_n_optimizer_steps, config.off_policy_train_batch_size = 2, 32
    config.evaluation, config.evaluation_interval, config.evaluation_episodes = True, 64, 2
    experiment = Experiment(
        task=GroundedTask("ma_rtfm", OPTIONS),
        algorithm_config=algorithm.get_from_yaml(),
        model_config=MlpConfig.get_from_yaml(),
        critic_model_config=MlpConfig.get_from_yaml(),
        seed=0,
        config=config,
    )
    with patch.object(GroundedTask, "log_info", wraps=GroundedTask.log_info) as logged:
        experiment.run()
    assert experiment.n_iters_performed == 2
    assert experiment.total_frames == 128
    assert experiment.group_map == {"agent": ["agent_0", "agent_1", "agent_2"]}
    played = logged.call_args.args[0]
    assert played["next", "done"].any()
    assert 0 <= GroundedTask.log_info(played)["win_rate"] <= 1
    legal = played["agent", "action_mask"].gather(-1, played["agent", "action"].unsqueeze(-1))
    assert legal.all()


def test_an_unknown_option_is_named():
    with pytest.raises(ConfigurationError):
        GroundedTask("ma_rtfm", {"stagee": "s1"}).get_env_fun(1, False, 0, "cpu")()
