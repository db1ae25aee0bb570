"""One MQTT link: connect, subscribe, publish, and again when it is lost; a broker to embed."""
