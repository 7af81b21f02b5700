"""`make bench`: bolide and Apache RocketMQ in turn, on one machine, under the same Java load; ratios first."""
