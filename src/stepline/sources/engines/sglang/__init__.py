"""SGLang 0.4.1 to 0.5.23: log lines, `/server_info` and `/metrics`."""

from typing import TYPE_CHECKING

from stepline.sources.engine import DocumentReader, Engine, MetricsReader
from stepline.sources.engines.sglang import metrics, server_info
from stepline.sources.engines.sglang.log import SglangLog

if TYPE_CHECKING:
    from stepline.sources.http import Http
    from stepline.sources.surface import Found


def _find(http: "Http") -> "Found | None":
    from stepline.sources.engines.sglang import routes  # noqa: PLC0415  # HTTP, only for a running server

    return routes.find(http)


ENGINE = Engine(
    name="sglang",
    log=SglangLog,
    metrics=MetricsReader(metrics.PREFIX, metrics.to_metrics),
    documents=(DocumentReader("server info", server_info.recognises, server_info.read_server_info),),
    find=_find,
)
