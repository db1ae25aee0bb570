"""The tile response: field, slots, model, guarantee."""
