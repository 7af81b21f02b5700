"""Which functions of an application give something to await."""

import functools

import pytest

from bolide.model.functions import is_coroutine_function


async def later(value: object) -> None: ...


class Later:
    async def __call__(self, value: object) -> None: ...

    async def method(self, value: object) -> None: ...


@pytest.mark.parametrize("value", [later, functools.partial(later, 1), Later().method, Later()])
def test_what_is_written_with_async_def_is_a_coroutine_function(value: object) -> None:
    assert is_coroutine_function(value)


@pytest.mark.parametrize(
    "value", [print, len, lambda value: value, functools.partial(print, 1), Later, 5, None]
)
def test_what_is_not_is_none_and_neither_is_a_class_whose_objects_are(value: object) -> None:
    assert not is_coroutine_function(value)
