"""The laboratory's part of each mechanism: its trial in the audit, its law, its forms in the study."""
