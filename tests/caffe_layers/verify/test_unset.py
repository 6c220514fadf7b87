"""Members that a class leaves without a value."""

from cuffi.caffe_layers.verify.unset import unset, words

HEADER = """
template <typename Dtype>
class HalveLayer : public Layer<Dtype> {
 public:
  explicit HalveLayer(const LayerParameter& param) : Layer<Dtype>(param), set_(3), also_{4} {}
  virtual int ExactNumBottomBlobs() const { return 1; }
  enum Kind { ONE, TWO };
 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  int set_, also_;
  const unsigned int most_;
  Dtype scale_, shift_ = 0, weights_[3];
  std::vector<int> sizes_;
  Blob<Dtype>* mask_;
  std::size_t size_ = 1;
  Blob<Dtype> kept_;
  static int shared_;
  bool flag_{true};
};
class Other { int other_; };
"""


def test_plain_members(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include/halve_layer.hpp").write_text(HEADER)
    assert unset(tmp_path, "Halve") == ["most_", "scale_", "weights_", "mask_"]
    assert "does not set most_, scale_, weights_, mask_" in words(tmp_path, "Halve")
    assert "other_" in unset(tmp_path, "Unknown")  # its class has another name, so all classes count


def test_no_members(tmp_path):
    assert unset(tmp_path, "Halve") == [] and words(tmp_path, "Halve").endswith("the memory is zeros")
