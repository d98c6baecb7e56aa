"""Cost models: roofline, fitted, table; one evaluator for all (spec section 2)."""

from instances.costs.profile import Profile, read_profile
from instances.costs.roofline import LayerSeconds
from instances.costs.specs import CostSpec, FittedSpec, RooflineSpec, TableSpec, resolve_costs
from instances.costs.stage import StageCost, make_costs

__all__ = [
    "CostSpec",
    "FittedSpec",
    "LayerSeconds",
    "Profile",
    "RooflineSpec",
    "StageCost",
    "TableSpec",
    "make_costs",
    "read_profile",
    "resolve_costs",
]
