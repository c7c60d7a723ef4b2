"""`grid batsim-server`: a local policy as a scheduler for Batsim."""

from __future__ import annotations

from grid.cli.endings import endings, naming_options


def batsim_server(
    policy: str, endpoint: str = "tcp://127.0.0.1:28000", overrides: list[str] | None = None
) -> None:
    """Serve a policy as a scheduler for Batsim, using version 4 of its protocol.

    The server stops after one simulation. A job gets the free resources with the lowest numbers.
    """
    with endings():
        import yaml  # type: ignore[import-untyped]

        from grid.integrations.batsim import Server, serve
        from grid.model.errors import input_error, need
        from grid.policies.registry import make_policy

        need("grid batsim-server", "batsim", "zmq")
        settings = {}
        for one in overrides or ():
            key, is_set, text = one.partition("=")
            if not is_set:
                raise input_error("--set", repr(one), "KEY=VALUE")
            try:
                settings[key] = yaml.safe_load(text)
            except yaml.YAMLError:
                raise input_error("--set", repr(one), "a value in YAML") from None
        with naming_options("endpoint"):
            serve(Server(make_policy(policy, settings), policy), endpoint)
