"""The name by which verifiers finds our games, which is a module without a dot: `vf-eval magrounding-verifiers`."""

from magrounding.extensions.language_models.verifiers import GroundedEnv, GroundedHarness, GroundedTaskset

__all__ = ["GroundedEnv", "GroundedHarness", "GroundedTaskset"]
