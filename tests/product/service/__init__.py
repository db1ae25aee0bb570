"""The ledger, the links, the sidecar and what runs around it."""
