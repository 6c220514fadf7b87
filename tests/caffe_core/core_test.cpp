// Prints one "name<TAB>what happened" line for each thing that tests/src/caffe/test_core.py expects
// of the core.
#include <cmath>

#include "caffe/filler.hpp"
#include "caffe/layer.hpp"
#include "caffe/util/rng.hpp"
#include "helpers.hpp"
#include "words.hpp"

enum class Color { kRed = 3 };
struct Opaque {
  bool operator==(const Opaque&) const { return false; }
};

static void test_checks() {
  int evaluated = 0;
  const auto once = [&] { return ++evaluated; };
  say("check_eq", caught([&] { CHECK_EQ(once(), 2) << "so " << 7; }));
  say("operands_evaluated", std::to_string(evaluated));
  say("check", caught([] { CHECK(1 > 2) << "really"; }));
  say("check_passes", caught([] { CHECK_EQ(size_t(3), 3) << "no"; }));
  say("check_enum", caught([] { CHECK(Color::kRed == Color::kRed), CHECK_NE(Color::kRed, Color::kRed); }));
  say("check_opaque", caught([] { CHECK_EQ(Opaque(), Opaque()); }));
  say("check_string", caught([] { CHECK_EQ(string("a"), "b"); }));
  say("check_near", caught([] { CHECK_NEAR(1.0, 2.0, 0.5); }));
  say("check_notnull", caught([] { CHECK_NOTNULL(static_cast<int*>(nullptr)); }));
  say("check_streq", caught([] { CHECK_STREQ("a", "b"); }));
  say("fatal", caught([] { LOG(FATAL) << "no " << 1; }));
  say("not_implemented", caught([] { NOT_IMPLEMENTED; }).substr(0, 14));
  say("not_implemented_by_hand", caught([] { LOG(FATAL) << "not implemented yet."; }).substr(0, 14));
  say("operand_throws", caught([] {
        const auto thrower = []() -> int { throw std::runtime_error("inner"); };
        LOG(FATAL) << thrower();
      }));
  say("nested", caught([] {
        const auto inner = [] { return CHECK_EQ(1, 2), 0; };
        CHECK_EQ(3, 4) << inner();
      }));
  string branch = "none";
  for (int i = 0; i < 2; ++i) {
    if (i)
      CHECK_EQ(1, 1) << "unreached";
    else
      branch = "else";
  }
  true ? CHECK_EQ(1, 1) : CHECK(false);
  say("dangling_else", branch);
  int every = 0;
  for (int i = 0; i < 7; ++i) LOG_EVERY_N(INFO, 3) << ++every;
  LOG(INFO) << ++every;
  DCHECK_EQ(++every, -1);
  DLOG(ERROR) << ++every;
  say("info_evaluated", std::to_string(every));
}

static const char* head(const SyncedMemory& memory) {
  const char* names[] = {"UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED"};
  return names[memory.head()];
}

static void test_memory() {
  SyncedMemory memory(4);
  string states = head(memory);
  const auto step = [&](const void* address) { states += string(" ") + (address ? head(memory) : "NULL"); };
  step(memory.gpu_data());
  step(memory.cpu_data());
  step(memory.mutable_cpu_data());
  step(memory.gpu_data());
  step(memory.mutable_gpu_data());
  say("states", states);
  SyncedMemory fresh(64);
  string all(static_cast<const char*>(fresh.cpu_data()), 64);
  say("zero_filled", all == string(64, '\0') ? "yes" : "no");

  float tensor[4] = {1, 2, 3, 4}, smaller[2] = {5, 6};
  SyncedMemory lent(16);
  lent.adopt(tensor, 16, SyncedMemory::kDefined, false);
  string at = lent.cpu_data() == tensor ? "tensor" : "copy";
  static_cast<float*>(lent.mutable_cpu_data())[0] = 9;
  at += lent.cpu_data() == tensor ? " tensor" : " copy";
  say("read_only", at + " " + list(tensor, 4) + " | " + list(static_cast<const float*>(lent.cpu_data()), 4));
  lent.drop();
  lent.adopt(smaller, 8, SyncedMemory::kUndefined, true);
  lent.cpu_data();
  say("undefined_is_zeroed", list(smaller, 2));
  float before[2] = {7, 8};
  SyncedMemory whole(8);
  whole.adopt(before, 8, SyncedMemory::kOverwritten, true);
  string kept = list(static_cast<float*>(whole.mutable_cpu_data()), 2);
  whole.adopt(before, 8, SyncedMemory::kOverwritten, true);
  say("overwritten", kept + " | " + list(static_cast<const float*>(whole.cpu_data()), 2));
  lent.fit(12);
  say("too_small_is_dropped", lent.cpu_data() == smaller ? "no" : "yes");
  say("own_after_drop", list(static_cast<const float*>(lent.cpu_data()), 4));
}

static void test_blobs() {
  Blob<float> blob(2, 3, 4, 5), other;
  say("shape", blob.shape_string() + " " + std::to_string(blob.offset(1, 2, 3, 4)) + " " +
                   std::to_string(blob.count(1, 3)) + " " + std::to_string(blob.shape(-1)));
  float* before = blob.mutable_cpu_data();
  before[0] = 7;
  blob.Reshape(vector<int>{5, 2});
  string growth = blob.cpu_data() == before ? "kept" : "new";
  blob.Reshape(2, 3, 4, 6);
  growth += blob.cpu_data()[0] == 0 ? " zeroed" : " kept";
  say("reshape", growth);
  say("legacy", list(std::vector<int>{blob.num(), blob.channels(), blob.height(), blob.width()}.data(), 4));
  Blob<float> five(vector<int>{2, 3, 4, 5, 6});
  say("legacy_five", caught([&] { five.num(); }));
  most_legacy_axes() = 5;
  say("legacy_of_a_fork", list(std::vector<int>{five.num(), five.width(), five.LegacyShape(4)}.data(), 3));
  most_legacy_axes() = 4;
  blob.Reshape(vector<int>{5, 2});
  say("legacy_padded",
      list(std::vector<int>{blob.num(), blob.channels(), blob.height(), blob.width()}.data(), 4));
  say("too_large", caught([&] { other.Reshape(vector<int>{70000, 70000}); }));
  say("negative", caught([&] { other.Reshape(vector<int>{-1}); }));
  // Sizes of a message or of a tensor are of 64 bits, and must not lose the upper half.
  const auto of_message = [&](vector<int64_t> sizes) {
    BlobShape shape;
    BlobProto proto;
    for (int64_t size : sizes) shape.add_dim(size), proto.mutable_shape()->add_dim(size);
    Blob<float> fresh;
    const string first = caught([&] { fresh.Reshape(shape); }),
                 second = caught([&] { fresh.FromProto(proto); });
    const string third = caught([&] { fresh.Reshape(sizes.data(), static_cast<int>(sizes.size())); });
    return first == second && second == third ? first : first + " | " + second + " | " + third;
  };
  say("wide", of_message({(int64_t{1} << 32) + 3}));
  say("wide_negative", of_message({-(int64_t{1} << 32) + 5}));
  say("wide_product", of_message({1 << 16, 1 << 16}));
  say("many_axes", of_message(vector<int64_t>(33, 1)));
  Blob<float> nothing(vector<int>{0, 1 << 16, 1 << 16});
  say("count_of_nothing", std::to_string(nothing.count()) + " " + std::to_string(nothing.count(0)) + " " +
                              std::to_string(nothing.count(0, 2)) + " " + caught([&] { nothing.count(1); }));
  BlobProto lying;  // of 2^31 - 1 values, of which none is there: no memory is asked for
  lying.mutable_shape()->add_dim(INT_MAX);
  say("lying", caught([&] { Blob<double>().FromProto(lying); }));
  Blob<float> moved(vector<int>{2, 3});
  string shapes = list(moved.gpu_shape(), 2);
  for (const vector<int>& shape :
       {vector<int>{3, 2}, vector<int>{4, 5, 6}, vector<int>{4, 5, 6}, vector<int>{7}}) {
    moved.Reshape(shape);
    shapes += " | " + list(moved.gpu_shape(), moved.num_axes());
  }
  say("gpu_shape", shapes);
  say("axis", caught([&] { blob.CanonicalAxisIndex(2); }));
  say("no_data", caught([] { Blob<float>().cpu_data(); }));
  other.Reshape(vector<int>{10});
  other.ShareData(blob);
  say("share", string(other.cpu_data() == blob.cpu_data() ? "one" : "two") +
                   (blob.owns_data() && !other.owns_data() ? " owner" : ""));
  other.Reshape(vector<int>{0, 3});
  say("empty", std::to_string(other.count()) + (other.cpu_data() ? " address" : " null"));
  Blob<int> indices(vector<int>{3});
  say("int_blob", list(indices.cpu_data(), 3) + " " + caught([&] { indices.asum_data(); }).substr(0, 14));
  Blob<char> signs(vector<int>{3});
  caffe_gpu_set(3, 'x', signs.mutable_gpu_data());
  say("char_blob", string(signs.cpu_data(), 3));

  Blob<double> values(vector<int>{3}), loaded;
  for (int i = 0; i < 3; ++i) values.mutable_cpu_data()[i] = i - 1, values.mutable_cpu_diff()[i] = 2;
  BlobProto proto;
  values.ToProto(&proto, true);
  loaded.FromProto(proto);
  say("proto", loaded.shape_string() + " " + list(loaded.cpu_data(), 3) + " " + list(loaded.cpu_diff(), 3));
  BlobProto legacy;
  legacy.set_num(1), legacy.set_channels(1), legacy.set_height(1), legacy.set_width(2);
  legacy.add_data(4), legacy.add_data(5);
  Blob<float> old;
  old.FromProto(legacy);
  say("legacy_proto", old.shape_string() + " " + list(old.cpu_data(), 2));
  Blob<float> at(2, 3, 4, 5);
  const Blob<float>& read = at;
  const vector<const float*> firsts{read.cpu_data(), read.gpu_data(), read.cpu_diff(), read.gpu_diff()};
  const auto where = [&](int n, int c, int h, int w) {
    return vector<const float*>{read.cpu_data_at(n, c, h, w), read.gpu_data_at(n, c, h, w),
                                read.cpu_diff_at(n, c, h, w), read.gpu_diff_at(n, c, h, w)};
  };
  const vector<const float*> defaults{read.cpu_data_at(), read.gpu_data_at(), read.cpu_diff_at(),
                                      read.gpu_diff_at()};
  const vector<const float*> written{at.mutable_cpu_data_at(), at.mutable_gpu_data_at(),
                                     at.mutable_cpu_diff_at(), at.mutable_gpu_diff_at()};
  string places = defaults == firsts && where(0, 0, 0, 0) == firsts ? "first" : "elsewhere";
  places += written[0] == at.cpu_data() && written[2] == at.cpu_diff() ? " first" : " elsewhere";
  for (int i = 0; i < 4; ++i) places += " " + std::to_string(where(1, 2, 3, 4)[i] - firsts[i]);
  say("at", places);
  Blob<float> flat(vector<int>{2});
  say("shape_equals", flat.ShapeEquals(legacy) ? "yes" : "no");
  say("copy_from", caught([&] { old.CopyFrom(flat); }));
}

// Sums, scaling and updates, where nothing is, where the CPU wrote last and where the GPU did.
static void test_blob_arithmetic() {
  std::ostringstream text;
  for (int state = 0; state < 3; ++state) {
    Blob<double> blob(vector<int>{3});
    if (state) {
      double* values[] = {state == 1 ? blob.mutable_cpu_data() : blob.mutable_gpu_data(),
                          state == 1 ? blob.mutable_cpu_diff() : blob.mutable_gpu_diff()};
      for (int i = 0; i < 3; ++i) values[0][i] = i - 2, values[1][i] = 2 * i + 1;
    }
    const auto sums = [&] {
      text << blob.asum_data() << " " << blob.asum_diff() << " " << blob.sumsq_data() << " "
           << blob.sumsq_diff() << ", ";
    };
    sums();
    blob.scale_data(2), blob.scale_diff(-3);
    sums();
    text << caught([&] { blob.Update(); }) << " " << head(*blob.data()) << " " << list(blob.cpu_data(), 3)
         << " " << list(blob.cpu_diff(), 3) << " | ";
  }
  say("arithmetic", text.str());

  string copies;
  for (const bool gpu : {false, true}) {
    Caffe::set_mode(gpu ? Caffe::GPU : Caffe::CPU);
    Blob<float> from(vector<int>{2}), to(vector<int>{3});
    from.mutable_cpu_data()[1] = 4, from.mutable_cpu_diff()[1] = 5;
    to.CopyFrom(from, false, true);
    copies += head(*to.data());
    copies += " " + to.shape_string() + " " + list(to.cpu_data(), 2) + " " + list(to.cpu_diff(), 2);
    to.CopyFrom(from, true);
    copies += " " + list(to.cpu_data(), 2) + " ";
    copies += head(*to.diff());
    copies += " " + list(to.cpu_diff(), 2) + " | ";
  }
  Caffe::set_mode(Caffe::CPU);
  say("copies", copies);

  // The caller's memory is as large as the blob is now, whatever it was before; the diff's follows.
  double given[2] = {1, 2};
  string lent;
  for (const bool gpu : {false, true}) {
    Blob<double> blob(vector<int>{5});
    const SyncedMemory* first = blob.data().get();
    gpu ? blob.set_gpu_data(blob.mutable_gpu_data()) : blob.set_cpu_data(blob.mutable_cpu_data());
    lent += blob.data().get() == first ? "kept " : "new ";
    blob.Reshape(vector<int>{2});
    gpu ? blob.set_gpu_data(given) : blob.set_cpu_data(given);
    lent += std::to_string(blob.data()->size()) + " " + std::to_string(blob.diff()->size()) + " ";
    lent += (gpu ? blob.gpu_data() : blob.cpu_data()) == given ? "there " : "elsewhere ";
    blob.Reshape(vector<int>{3});
    lent += std::to_string(blob.data()->size()) + " | ";
  }
  say("lent", lent + caught([] { Blob<double>(vector<int>{1}).set_cpu_data(nullptr); }) + " | " +
                  caught([] { Blob<double>(vector<int>{1}).set_gpu_data(nullptr); }));
  Blob<double> one(vector<int>{2, 3}), two(vector<int>{6}), three(vector<int>{5});
  one.ShareDiff(two);
  say("share_diff", string(one.cpu_diff() == two.cpu_diff() ? "one " : "two ") +
                        (one.cpu_data() == two.cpu_data() ? "one " : "two ") +
                        caught([&] { one.ShareDiff(three); }) + " | " +
                        caught([&] { one.ShareData(three); }));
}

static void test_blob_protos() {
  Blob<float> blob(vector<int>{2, 1}), read;
  blob.mutable_cpu_data()[1] = 3, blob.mutable_cpu_diff()[0] = 4;
  string protos;
  for (const bool diff : {false, true}) {
    BlobProto proto;
    proto.add_data(9), proto.add_diff(9), proto.add_double_data(9), proto.add_double_diff(9);
    blob.ToProto(&proto, diff);
    for (int size :
         {proto.data_size(), proto.diff_size(), proto.double_data_size(), proto.double_diff_size()})
      protos += std::to_string(size) + " ";
    read.FromProto(proto);
    protos += read.shape_string() + " " + list(read.cpu_data(), 2) + " " + list(read.cpu_diff(), 2) + " | ";
  }
  say("float_proto", protos);
  BlobProto proto;
  blob.ToProto(&proto, false);
  read.Reshape(vector<int>{2});
  protos = caught([&] { read.FromProto(proto, false); }) + " ";
  read.Reshape(vector<int>{2, 1});
  protos += caught([&] { read.FromProto(proto, false); }) + " ";
  // An old message's four axes, against a blob of fewer, of more, and one that differs in each.
  for (const vector<int>& shape :
       {vector<int>{4, 5}, vector<int>{3, 4, 5}, vector<int>{2, 3, 4, 5}, vector<int>{1, 2, 3, 4, 5},
        vector<int>{9, 3, 4, 5}, vector<int>{2, 9, 4, 5}, vector<int>{2, 3, 9, 5}, vector<int>{2, 3, 4, 9}}) {
    for (const int fewer : {0, 1, 2}) {
      BlobProto old;
      old.set_num(fewer ? 1 : 2), old.set_channels(fewer == 2 ? 1 : 3), old.set_height(4), old.set_width(5);
      protos += Blob<float>(shape).ShapeEquals(old) ? "=" : "-";
    }
    protos += " ";
  }
  say("shapes_of_protos", protos);
}

static void test_fillers() {
  Caffe::set_random_seed(1701);
  FillerParameter param;
  Blob<float> blob(vector<int>{40, 30});
  const auto range = [&](const char* type) {
    param.set_type(type);
    shared_ptr<Filler<float> > filler(GetFiller<float>(param));
    filler->Fill(&blob);
    return *std::max_element(blob.cpu_data(), blob.cpu_data() + blob.count());
  };
  param.set_value(3);
  say("constant", std::to_string(range("constant")));
  param.set_min(-1), param.set_max(2);
  const float uniform = range("uniform");
  say("uniform", uniform > 1.9f && uniform < 2 ? "within" : std::to_string(uniform));
  const float xavier = range("xavier"), bound = std::sqrt(3.0f / 30);
  say("xavier", xavier > 0.95f * bound && xavier <= bound ? "within" : std::to_string(xavier));
  param.set_variance_norm(FillerParameter_VarianceNorm_FAN_OUT);
  say("xavier_out", range("xavier") <= std::sqrt(3.0f / 40) ? "within" : "beyond");
  range("positive_unitball");
  float sum = 0;
  for (int i = 0; i < 30; ++i) sum += blob.cpu_data()[i];
  say("unitball", std::fabs(sum - 1) < 1e-5 ? "one" : std::to_string(sum));
  param.set_std(2);
  range("gaussian");
  double squares = 0;
  for (int i = 0; i < blob.count(); ++i) squares += blob.cpu_data()[i] * blob.cpu_data()[i];
  say("gaussian", std::fabs(std::sqrt(squares / blob.count()) - 2) < 0.2 ? "two" : std::to_string(squares));
  param.set_sparse(4);
  range("gaussian");
  const int kept = blob.count() - std::count(blob.cpu_data(), blob.cpu_data() + blob.count(), 0.0f);
  say("sparse", kept > 60 && kept < 180 ? "a tenth" : std::to_string(kept));
  param.clear_sparse();
  Blob<float> kernel(1, 1, 4, 4);
  param.set_type("bilinear");
  shared_ptr<Filler<float> >(GetFiller<float>(param))->Fill(&kernel);
  say("bilinear", list(kernel.cpu_data(), 4));
  say("unknown_filler", caught([&] { range("nonesuch"); }));
  Caffe::set_random_seed(5);
  const unsigned first = (*caffe_rng())();
  Caffe::set_random_seed(5);
  say("seed", first == (*caffe_rng())() ? "same" : "other");
}

// What each filler draws, [least, mean, deviation, most] in its own unit (the fan's, where it looks at one).
static void test_what_fillers_draw() {
  const auto drawn = [](const string& type, const std::function<void(FillerParameter&)>& set, double unit) {
    FillerParameter param;
    param.set_type(type), set(param);
    Blob<double> blob(80, 20, 3, 5);
    shared_ptr<Filler<double> >(GetFiller<double>(param))->Fill(&blob);
    double sum = 0, squares = 0, least = 1e9, most = -1e9;
    for (int i = 0; i < blob.count(); ++i) {
      const double value = blob.cpu_data()[i] / unit;
      sum += value, squares += value * value, least = std::min(least, value), most = std::max(most, value);
    }
    const double mean = sum / blob.count();
    char text[100];
    snprintf(text, sizeof text, "%.1f %.1f %.1f %.1f, ", least, std::round(10 * mean) / 10 + 0.0,
             std::sqrt(squares / blob.count() - mean * mean), most);
    return string(text);
  };
  using Param = FillerParameter;
  const double fans[] = {20 * 15, 80 * 15, 50 * 15};  // FAN_IN, FAN_OUT, AVERAGE
  string xavier, msra;
  for (int norm = 0; norm < 3; ++norm) {
    const auto set = [&](Param& p) { p.set_variance_norm(FillerParameter_VarianceNorm(norm)); };
    xavier += drawn("xavier", set, std::sqrt(3 / fans[norm]));
    const string text = drawn("msra", set, std::sqrt(2 / fans[norm]));
    msra += text.substr(text.find(' '), 9);
  }
  say("xavier_draws", xavier);
  say("msra_draws", msra);
  say("uniform_draws", drawn("uniform", [](Param& p) { p.set_min(-2), p.set_max(4); }, 1));
  say("sparse_draws",
      drawn(
          "gaussian", [](Param& p) { p.set_sparse(0), p.set_mean(3); }, 1) +
          drawn(
              "gaussian", [](Param& p) { p.set_sparse(80), p.set_std(0), p.set_mean(3); }, 1) +
          drawn("gaussian", [](Param& p) { p.set_sparse(16), p.set_std(0), p.set_mean(5); }, 1));
  string refused;
  for (const string type :
       {"constant", "uniform", "xavier", "msra", "bilinear", "positive_unitball", "gaussian"}) {
    for (const int sparse : {-2, -1, 0}) {
      FillerParameter param;
      param.set_type(type), param.set_sparse(sparse);
      Blob<float> blob(2, 2, 2, 2);
      refused +=
          caught([&] { shared_ptr<Filler<float> >(GetFiller<float>(param))->Fill(&blob); }) == "nothing"
              ? "+"
              : "-";
    }
    FillerParameter param;
    param.set_type(type);
    for (const vector<int>& shape : {vector<int>{0, 2}, vector<int>{2, 2, 2}, vector<int>{1, 1, 2, 3}}) {
      Blob<float> blob(shape);
      refused +=
          caught([&] { shared_ptr<Filler<float> >(GetFiller<float>(param))->Fill(&blob); }) == "nothing"
              ? "+"
              : "-";
    }
    refused += " ";
  }
  say("what_fillers_take", refused);
  FillerParameter param;
  param.set_type("bilinear");
  Blob<float> odd(1, 2, 3, 3);
  shared_ptr<Filler<float> >(GetFiller<float>(param))->Fill(&odd);
  say("odd_bilinear", list(odd.cpu_data(), 18));
  param.set_type("positive_unitball");
  shared_ptr<Filler<float> >(GetFiller<float>(param))->Fill(&odd);
  Blob<float> two(vector<int>{2, 3});
  shared_ptr<Filler<float> >(GetFiller<float>(param))->Fill(&two);
  const float* v = two.cpu_data();
  say("two_unitballs",
      std::fabs(v[0] + v[1] + v[2] - 1) + std::fabs(v[3] + v[4] + v[5] - 1) < 1e-6 ? "one" : "not");
}

// BLAS's functions of vectors: densely, by steps, and from the far end.
static void test_strides() {
  string text;
  for (const vector<int>& inc :
       {vector<int>{1, 1}, vector<int>{2, 1}, vector<int>{1, 2}, vector<int>{-1, 2}}) {
    double x[6] = {1, -2, 3, -4, 5, -6}, y[6] = {10, 20, 30, 40, 50, 60};
    const auto dot = [&] {
      text += std::to_string(static_cast<int>(cblas_ddot(3, x, inc[0], y, inc[1]))) + " ";
    };
    dot();
    cblas_daxpy(3, 2., x, inc[0], y, inc[1]);
    text += list(y, 6) + ", ";
    cblas_daxpby(3, 2., x, inc[0], 3., y, inc[1]);
    text += list(y, 6) + ", ";
    cblas_daxpby(3, 2., x, inc[0], 0., y, inc[1]);
    text += list(y, 6) + ", ";
    cblas_dcopy(3, x, inc[0], y, inc[1]);
    text += list(y, 6) + ", ";
    if (inc[0] > 0) {
      text += std::to_string(static_cast<int>(cblas_dasum(3, x, inc[0]))) + " ";
      text += std::to_string(static_cast<int>(std::pow(cblas_dnrm2(3, x, inc[0]), 2) + 0.5)) + " ";
    }
    cblas_dscal(3, 7., x, inc[0]);
    text += list(x, 6) + " | ";
  }
  say("strides", text);
  vector<double> many(9000);
  for (int i = 0; i < 9000; ++i) many[i] = i % 7 - 3;
  say("long_sums", std::to_string(cblas_dasum(9000, many.data(), 1)) + " " +
                       std::to_string(cblas_ddot(8999, many.data(), 1, many.data() + 1, 1)) + " " +
                       std::to_string(cblas_dasum(4500, many.data(), 2)) + " " +
                       std::to_string(cblas_dasum(17, many.data(), 1)));
}

static void test_integers() {
  Blob<int> blob(vector<int>{3});
  const std::function<void()> all[] = {[&] { blob.asum_data(); },   [&] { blob.asum_diff(); },
                                       [&] { blob.sumsq_data(); },  [&] { blob.sumsq_diff(); },
                                       [&] { blob.scale_data(2); }, [&] { blob.scale_diff(2); },
                                       [&] { blob.Update(); }};
  string text;
  for (const auto& one : all) text += caught(one).substr(0, 14) + " ";
  int number = 7;
  text += std::to_string(*CHECK_NOTNULL(&number));
  for (const float p : {0.f, 1.f}) {
    unsigned int words[5] = {9, 9, 9, 9, 9};
    int signs[5] = {9, 9, 9, 9, 9};
    caffe_gpu_rng_bernoulli(4, p, words), caffe_gpu_rng_bernoulli(4, p, signs);
    text += " " + list(words, 5) + ", " + list(signs, 5);
  }
  say("integers", text);
}

int main() {
  host_services.log = [](int64_t, const char*) {};
  test_checks();
  test_memory();
  test_blobs();
  test_blob_arithmetic();
  test_blob_protos();
  test_fillers();
  test_what_fillers_draw();
  test_strides();
  test_integers();
  test_words();
}
