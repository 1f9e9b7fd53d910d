"""Which servers and buckets may be read: those that the environment names, and no others.

`OLMO_DATA_ALLOWED_HOSTS` holds hosts (`data.example.org`, with `:port` for that port alone) and
buckets (`s3://bucket`, `s3://bucket/prefix`), separated by commas; unset, nothing remote is read.
It comes from the environment for the reason `OLMO_DATA_ALLOWED_PATHS` does: more people write
configurations than run machines. A name that leads to an address of this machine or of a private
network is refused, also after a redirect, so that no configuration reads what only insiders can;
`OLMO_DATA_ALLOWED_PRIVATE_HOSTS` names the hosts for which that is wanted.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from assets.errors import LandingError

ALLOWED_HOSTS_VARIABLE = "OLMO_DATA_ALLOWED_HOSTS"
PRIVATE_HOSTS_VARIABLE = "OLMO_DATA_ALLOWED_PRIVATE_HOSTS"
SCHEMES = ("http", "https", "s3")


@dataclass(frozen=True, slots=True)
class HostGuard:
    """Asked before every request, those of redirects among them, and after every connection."""

    def check_url(self, url: str) -> None:
        """Refuse a url that may not be read.

        Raises:
            LandingError: its scheme is unknown, it carries a user, a password or a query (which
                would be stored), or its host or bucket is not allowed.
        """
        parts = urlsplit(url)
        # What is refused may hold a secret: no message repeats it.
        shown = f"{parts.scheme}://{parts.hostname}{parts.path}"
        if parts.scheme not in SCHEMES:
            raise LandingError(f"{shown}: {parts.scheme}:// is not one of {', '.join(SCHEMES)}")
        if not parts.hostname:
            raise LandingError(f"{url}: an address names a host or a bucket")
        if parts.username is not None or parts.password is not None:
            raise LandingError(f"{shown}: leave user and password out of an address")
        if parts.query or parts.fragment:
            raise LandingError(
                f"{shown}: leave out what follows the path (? or #): an address is stored, and a "
                "signed one is a secret that expires"
            )
        if not _is_allowed(url):
            raise LandingError(
                f"{shown}: {parts.scheme}://{parts.netloc} is not among what may be read; name it "
                f"in the environment variable {ALLOWED_HOSTS_VARIABLE}"
            )

    def check_peer(self, url: str, address: str) -> None:
        """Refuse a connection that was made to an address inside.

        Raises:
            LandingError: the address is not a public one and the host is not named as private.
        """
        parts = urlsplit(url)
        if ipaddress.ip_address(address.partition("%")[0]).is_global:
            return
        if not _names(os.environ.get(PRIVATE_HOSTS_VARIABLE, ""), parts.hostname, parts.port):
            raise LandingError(
                f"{parts.scheme}://{parts.netloc} leads to {address}, which is no public address; "
                f"if that is wanted, name the host in {PRIVATE_HOSTS_VARIABLE}"
            )


def _is_allowed(url: str) -> bool:
    value = os.environ.get(ALLOWED_HOSTS_VARIABLE, "")
    parts = urlsplit(url)
    if parts.scheme != "s3":
        return _names(value, parts.hostname, parts.port)
    places = [item.strip().rstrip("/") for item in value.split(",")]
    return any(
        place.startswith("s3://") and (url == place or url.startswith(place + "/"))
        for place in places
    )


def _names(value: str, host: str | None, port: int | None) -> bool:
    """Return whether a list of hosts, each with or without its port, names this one."""
    wanted = {item.strip().lower() for item in value.split(",")} - {""}
    shown = f"[{host}]" if host and ":" in host else host
    return shown in wanted or f"{shown}:{port}" in wanted
