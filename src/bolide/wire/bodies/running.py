"""What a consumer answers to an operator, passed on by its broker: how a message went that it was given (309)."""

from dataclasses import dataclass

from bolide.wire.bodies.members import number, parse_answer, text


@dataclass(frozen=True, slots=True)
class DirectResult:
    """RocketMQ: ConsumeMessageDirectlyResult."""

    verdict: str
    """One of CMResult: CR_SUCCESS, CR_LATER, CR_THROW_EXCEPTION and others."""
    remark: str
    took_ms: int

    @property
    def is_success(self) -> bool:
        return self.verdict in ("CR_SUCCESS", "CR_COMMIT")


def decode_direct_result(body: bytes) -> DirectResult:
    members = parse_answer(body, "the result of consuming")
    return DirectResult(
        text(members, "consumeResult"), text(members, "remark"), number(members, "spentTimeMills")
    )
