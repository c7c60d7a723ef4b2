"""A scenario: from YAML to a validated description, and from there to entities and links."""
