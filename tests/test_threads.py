"""One place shares the cores, and what it decides reaches every thread that computes."""

import pytest
import torch

from magrounding.threads import ThreadPlan, plan_threads, using


@pytest.mark.parametrize(
    ("agents", "envs", "cores", "plan"),
    [
        (1, 64, 2, ThreadPlan(torch=2, agents=1, world=1)),
        (2, 20, 2, ThreadPlan(torch=1, agents=2, world=1)),
        (3, 20, 2, ThreadPlan(torch=1, agents=3, world=1)),
        (2, 20, 16, ThreadPlan(torch=8, agents=2, world=1)),
        (2, 4096, 2, ThreadPlan(torch=1, agents=2, world=2)),
        (3, 64, 1, ThreadPlan(torch=1, agents=1, world=1)),
    ],
)
def test_shares_of_the_cores(agents, envs, cores, plan):
    assert plan_threads(agents, envs, cores=cores) == plan


def test_a_gpu_needs_no_threads_of_torch():
    assert plan_threads(2, 64, cores=16, cuda=True) == ThreadPlan(torch=1, agents=2, world=1)


def test_the_plan_reaches_the_agents_threads_and_is_undone():
    before = torch.get_num_threads()
    with using(ThreadPlan(torch=before + 2, agents=3, world=1)) as parallel_map:
        assert torch.get_num_threads() == before + 2
        # A product large enough for OpenMP: what a thread reports after computing is what it computed with.
        seen = list(
            parallel_map(
                lambda i: (torch.ones(300, 300).mm(torch.ones(300, 300)), torch.get_num_threads())[1], range(9)
            )
        )
    assert seen == [before + 2] * 9
    assert torch.get_num_threads() == before


def test_results_come_in_order_and_errors_come_through():
    with using(ThreadPlan(torch=1, agents=3, world=1)) as parallel_map:
        assert list(parallel_map(lambda i: i * i, range(7))) == [i * i for i in range(7)]
        with pytest.raises(ZeroDivisionError):
            list(parallel_map(lambda i: 1 // i, range(3)))
