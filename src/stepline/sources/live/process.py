"""The server's process where it runs on this machine: its log file and the model's folder."""

import contextlib
import os
import stat
from pathlib import Path
from typing import NamedTuple

import psutil


class LocalServer(NamedTuple):
    """A process that listens on the server's port. `log` is the file its output goes to, if it is one."""

    pid: int
    log: Path | None
    folder: Path | None
    """Its working folder, from which relative paths in its settings count."""
    forwards: str | None = None
    """Name of the process where it is known to pass connections on: the server itself is then elsewhere."""


FORWARDERS = frozenset(
    (
        *(
            "ssh",
            "sshd",
            "autossh",
            "kubectl",
            "oc",
            "socat",
            "ncat",
            "nginx",
            "haproxy",
            "envoy",
            "caddy",
            "traefik",
        ),
        *("docker-proxy", "rootlessport", "slirp4netns", "gvproxy", "tailscaled", "cloudflared", "frpc"),
    )
)


def find_local(port: int) -> LocalServer | None:
    """The process that listens on a port; None when there is none or the system does not let us see."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return None
    for connection in connections:
        listens_at = getattr(connection.laddr, "port", None)  # an unbound socket has an empty address
        if connection.status == psutil.CONN_LISTEN and listens_at == port and connection.pid:
            pid = connection.pid
            name = _name_of(pid)
            if name in FORWARDERS:
                return LocalServer(pid, None, None, forwards=name)
            return LocalServer(pid, _log_of(pid), _folder_of(pid))
    return None


def _name_of(pid: int) -> str | None:
    try:
        return psutil.Process(pid).name()
    except (psutil.Error, OSError):
        return None


def _log_of(pid: int) -> Path | None:
    """Python's logging goes to standard error unless told otherwise, so that is looked at first."""
    for stream in (2, 1):
        with contextlib.suppress(OSError):
            link = Path(f"/proc/{pid}/fd/{stream}")
            path = link.readlink()
            # In a container the path may name another file here, or none.
            if path.is_absolute() and stat.S_ISREG(path.stat().st_mode) and path.samefile(link):
                return path if os.access(path, os.R_OK) else None
    return None


def _folder_of(pid: int) -> Path | None:
    try:
        return Path(psutil.Process(pid).cwd())
    except (psutil.Error, OSError):
        return None
