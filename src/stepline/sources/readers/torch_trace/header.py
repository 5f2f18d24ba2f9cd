"""What a trace says about itself: devices, rank, clock base, recording options."""

import re
from typing import Any

import msgspec

from stepline.evidence.trace import TraceDevice

_RANK_IN_NAME = re.compile(r"(?:^|[^a-z])(?:rank|tp|worker|node)[-_]?(\d+)", re.IGNORECASE)


def parse(head: bytes, tail: bytes) -> dict[str, Any]:
    """Keys before and after the event list; what cannot be read is absent."""
    found: dict[str, Any] = {}
    before = head.rstrip()
    before = before[: before.rfind(b'"')] if before.endswith(b'traceEvents"') else before
    before = re.sub(rb'"traceEvents"\s*:\s*\[?\s*$', b"", before).rstrip().rstrip(b",")
    for part in (before + b"}", b"{" + tail.strip().lstrip(b"],").strip()):
        text = part.decode("utf-8", "replace").encode()
        try:
            found |= msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.DecodeError:
            continue
    return found


def devices(header: dict[str, Any]) -> dict[int, TraceDevice]:
    """Devices by index."""
    listed = header.get("deviceProperties")
    found = (
        [_device(entry) for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )
    return {device.index: device for device in found}


def _device(entry: dict[str, Any]) -> TraceDevice:
    def number(*keys: str) -> int | None:
        return next((value for key in keys if isinstance(value := entry.get(key), int) and value > 0), None)

    major, minor = entry.get("computeMajor"), entry.get("computeMinor")
    return TraceDevice(
        index=index if isinstance(index := entry.get("id"), int) else 0,
        name=str(entry["name"]) if entry.get("name") else None,
        capability=(major, minor) if isinstance(major, int) and isinstance(minor, int) else None,
        sms=number("numSms"),
        warp_threads=number("warpSize"),
        threads_per_sm=number("maxThreadsPerMultiprocessor", "maxThreadsPerMultiProcessor"),
        registers_per_sm=number("regsPerMultiprocessor"),
        shared_bytes_per_sm=number("sharedMemPerMultiprocessor", "maxSharedMemoryPerMultiProcessor"),
        memory_bytes=number("totalGlobalMem"),
    )


def rank(header: dict[str, Any], file_name: str) -> tuple[int | None, int | None]:
    """Rank and world size; a rank only the file name gives is taken from there."""
    info = header.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    own, world = info.get("rank"), info.get("world_size")
    if not isinstance(own, int) and (match := _RANK_IN_NAME.search(file_name)):
        own = int(match[1])
    return own if isinstance(own, int) else None, world if isinstance(world, int) else None


def flag(header: dict[str, Any], key: str) -> bool | None:
    """A recording option; absent means not recorded as on, which the format writes by leaving it out."""
    value = header.get(key)
    return bool(value) if isinstance(value, (bool, int)) else None
