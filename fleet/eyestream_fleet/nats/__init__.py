"""NATS JetStream: raw rows in its servers' memory, and an MQTT listener of its own."""
