"""Papers that are reproduced: their sentences as data, the judge, and the pages."""
