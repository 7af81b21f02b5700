"""Spark on our topics beside Spark on Kafka's: the same jobs, each side with its own server, Spark and connector."""
