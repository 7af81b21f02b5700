"""What a RocketMQ broker, name server and client must do, by id, and which tests show that ours do it."""
