import pytest

from tools.make.kinds import Native, kind_of, kinds


def test_native_layers_are_the_toolkits_own_kind():
    assert any(type(kind) is Native for kind in kinds())


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_each_kind_is_found_by_its_name(kind):
    assert kind_of(kind.name) is kind
