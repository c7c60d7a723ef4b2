"""Local policies: a view of one cluster in, a plan out. Pure."""
