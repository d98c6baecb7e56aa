"""``waferplan check``: the rules one by one, and the replay for the one that only it decides."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from instances.check import check
from instances.instance import Instance
from instances.numbers import digits
from instances.plan import Plan
from instances.rules import Finding
from solver.cli.errors import DONE, INFEASIBLE, one_line
from solver.cli.files import read_instance, read_plan
from solver.cli.tables import table
from solver.cli.terminal import show, show_json
from solver.evaluate import Evaluator

app = typer.Typer(add_completion=False)

_PLACES = 5


@app.command("check", epilog="Example: waferplan check instances/data/suites/mocap-latency/llama3-70b-128k.json r.json")
def check_command(
    instance: Annotated[Path, typer.Argument(metavar="INSTANCE", help="Instance file.")],
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file, or a result file with a plan.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as a JSON list.")] = False,
) -> int:
    """Check a plan against every rule; exit code 1 if one is broken."""
    problem = read_instance(instance)
    findings = all_findings(problem, read_plan(plan, problem))
    broken = len({finding.rule for finding in findings if not finding.ok})
    if as_json:
        show_json([finding.model_dump(mode="json") for finding in findings])
    else:
        show(findings_table(findings), "", f"{broken} rules broken" if broken else "every rule holds")
    return INFEASIBLE if broken else DONE


def all_findings(instance: Instance, plan: Plan) -> list[Finding]:
    """Static rules, then ``deadlock`` from the replay, which a plan that breaks a static rule does not get."""
    findings = check(instance, plan)
    if all(finding.ok for finding in findings):
        stuck = Evaluator(instance).full(plan).violations
        findings += stuck or (Finding(rule="deadlock", ok=True, amount=0.0, unit="bytes", where=""),)
    return findings


def findings_table(findings: list[Finding]) -> Table:
    """One row a finding; of a rule that is broken in many places, the first few and how many more."""
    rows = []
    for rule, group in groupby(findings, key=lambda finding: finding.rule):
        places = list(group)
        for finding in places[:_PLACES]:
            by = "" if finding.ok else f"{digits(finding.amount)} {finding.unit}"
            rows.append((rule, "ok" if finding.ok else "broken", by, one_line(finding.where)))
        if len(places) > _PLACES:
            rows.append(("", "", "", f"and in {len(places) - _PLACES} more places"))
    return table(("rule", "holds", "by", "where"), rows, numbers=("by",))
