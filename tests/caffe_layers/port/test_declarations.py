"""The declarations, classes and macros of one file."""

from cuffi.caffe_layers.port.declarations import Arity, classes_in, declarations_of, expansions, macros_of
from tools.cuda.source import Source

TEXT = """#define SIX 6
#define MAKE(name, ...) int name(__VA_ARGS__) { return SIX; }
#define SIX 7
namespace caffe {
int plain(int a, float b = 2);
void none(void) {}
template <typename T>
class PairLayer : public Layer<T> {
 public:
  virtual inline const char* type() const { return "Pair"; }
  T first(const T* x) const;
  int count_;
};
template <typename T>
T PairLayer<T>::first(const T* x) const { return x[0]; }
MAKE(six, int a, int b);
}
"""
SOURCE = Source(TEXT, "x.hpp")


def test_what_a_file_declares():
    items = {item.name: item for item in declarations_of(SOURCE)}
    assert items["plain"].arity == Arity(1, 2) and not items["plain"].defines
    assert items["none"].arity == Arity(0, 0) and items["none"].defines
    assert items["first"].scope == "PairLayer" and items["first"].defines
    assert items["PairLayer"].tokens[-1].text == ";"


def test_a_class_its_members_and_its_type():
    (pair,) = classes_in(SOURCE, "x.hpp")
    assert (pair.name, pair.type, str(pair.place)) == ("PairLayer", "Pair", "x.hpp:8")
    assert [item.name for item in pair.members if item.arity] == ["type", "first"]


def test_of_several_definitions_of_a_macro_the_first_counts():
    macros = macros_of(SOURCE, known=())
    assert [token.text for token in macros["SIX"].tokens] == ["SIX", "6"]
    assert set(macros_of(SOURCE, known={"SIX"})) == {"MAKE"}


def test_calls_of_macros_outside_of_functions_are_expanded():
    ((first, last), text), *rest = expansions(SOURCE, macros_of(SOURCE, known=()).values())
    tokens = SOURCE.lexed.tokens
    assert not rest and (tokens[first].text, tokens[last - 1].text) == ("MAKE", ";")
    (item,) = declarations_of(text)
    assert (item.name, item.arity) == ("six", Arity(2, 2))
