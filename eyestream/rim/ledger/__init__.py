"""The durable ledger: what was spent, and which rows are gone for ever."""
