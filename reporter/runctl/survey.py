"""What has to be known of the cluster before a run can be planned: its nodes and its version."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reporter.cli.cluster import TIMEOUT, asking
from reporter.cli.exits import CannotTell
from reporter.errors import Forbidden
from reporter.run.definition import Definition
from reporter.run.nodes import Selected, select

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

_NO_RIGHT = """\
the list of nodes is forbidden: {}
Name the nodes instead: --node NAME,..."""


def choose_nodes(
    api: "KubeApi", definitions: Sequence[Definition], selector: str, names: Sequence[str]
) -> dict[str, Selected]:
    """Return for each plugin of the driver Node where it runs. Raises CannotTell.

    With `names` these are taken as they are, which needs no right to list nodes.
    """
    wanted = [each for each in definitions if each.driver == "Node"]
    if not wanted:
        return {}
    if names:
        return {each.name: Selected(tuple(names), ()) for each in wanted}
    with asking():
        try:
            nodes = list(api.list_all("Node", None, selector, timeout=TIMEOUT))
        except Forbidden as error:
            raise CannotTell(_NO_RIGHT.format(error)) from None
    return {each.name: select(each, nodes) for each in wanted}
