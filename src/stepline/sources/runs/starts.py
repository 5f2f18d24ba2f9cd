"""Whether two logs tell of one start of one server: the parts of a rotated log, a launcher's copy, other nodes."""

from collections.abc import Mapping

from stepline.sources.logs import rotation
from stepline.sources.runs.fragment import Fragment

OF_A_RANK = frozenset(
    {
        *("node_rank", "data_parallel_rank", "data_parallel_start_rank", "headless", "host", "gpu_id_step"),
        *("base_gpu_id", "dist_init_addr", "master_addr", "data_parallel_address"),
    }
)
"""Arguments in which the processes of one start differ (SGLang `server_args.py`, vLLM `engine/arg_utils.py`)."""
NODES = ("nnodes", "data_parallel_size_local", "headless", "data_parallel_start_rank")
"""An argument that only a server of several machines has."""


def same_start(one: Fragment, other: Fragment) -> bool:
    """True where the second log continues, copies or accompanies the first."""
    ours, theirs = one.run.start, other.run.start
    if ours is None or theirs is None or one.kind != "log" or other.kind != "log":
        return False
    if ours.source != theirs.source and ours.source is not None and theirs.source is not None:
        return _nodes_of_one(ours.arguments, theirs.arguments)
    if one.file != other.file and theirs.origin is None and _parts_of_one(one.file, other.file):
        return True
    if one.file == other.file or not ours.arguments or not theirs.arguments:
        return False
    if ours.arguments == theirs.arguments:
        same_process = ours.process is not None and ours.process == theirs.process
        return (same_process or one.seed is not None) and not (one.run.decodes and other.run.decodes)
    return _nodes_of_one(ours.arguments, theirs.arguments)


def _parts_of_one(one: str, other: str) -> bool:
    return one != other and rotation.order(one)[0] == rotation.order(other)[0]


def _nodes_of_one(ours: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    """Two machines of one server: every other argument is the same, and both count several machines."""
    several = any(ours.get(name, "1") not in ("1", "0", "False") for name in NODES)
    names = (set(ours) | set(theirs)) - OF_A_RANK
    return several and bool(ours) and all(ours.get(name) == theirs.get(name) for name in names)
