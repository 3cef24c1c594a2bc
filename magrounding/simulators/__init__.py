"""Any PettingZoo or Gymnasium env as a VectorEnv, in this process or in supervised workers.

`vectorize` makes the vector env. Its envs write into an `Arena`, arrays that two processes may share: `serial` plays
them here, `process` in worker processes that are replaced when they die or hang. Importing this package starts nothing.
"""
