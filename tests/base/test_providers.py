"""What one part of the package does for another that does not import it."""

import cuffi
from cuffi.base.providers import providers, why_none


def test_the_installed_ones_are_found():
    (ported,) = providers("ported_layers")
    assert ported.__name__ == "cuffi.caffe_layers.provides_ported_layers"
    (depthwise,) = providers("depthwise_convolution")
    assert depthwise.function_for("cpu") is None and depthwise.activation_number("relu6") == 2


def test_a_layer_of_the_user_provides_something(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "mine" / "provides_a_thing.py").write_text("answer = 5\n")
    monkeypatch.setenv("LAYERS_DIR", str(tmp_path))
    assert [module.answer for module in providers("a_thing")] == [5]


def test_one_that_is_not_installed_is_left_out_and_named(monkeypatch):
    monkeypatch.setattr(cuffi, "_providing", lambda what: ["cuffi.no_wing.provides_x"])
    assert providers("x") == [] and "cuffi.no_wing" in why_none("x")
    monkeypatch.setattr(cuffi, "_providing", lambda what: [])
    assert why_none("x") == "the part of cuffi that does it is not installed"
