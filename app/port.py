"""Whether the app can be served at a port: known before the slow imports."""

import errno
import socket


def check_port(host: str, port: int) -> None:
    """Raise a SystemExit with a sentence if nothing can be served there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was closed a moment ago is free
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as problem:
            mend = "choose another host, or a port from 1 to 65535"
            if getattr(problem, "errno", None) == errno.EADDRINUSE:
                mend = (
                    "something else is using it, so choose another: "
                    f"`make app PORT={port + 1}` or `magnet-lab app --port {port + 1}`"
                )
            raise SystemExit(f"Port {port} on {host} cannot be had ({problem}): {mend}.") from problem
