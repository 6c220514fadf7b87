// Words of Caffe's that a fork's files may use, and what they do here: one "name<TAB>what happened" line each.
// Part of core_test.cpp: to compile the headers again would take longer than all of this.
#pragma once

#include <direct.h>
#include <io.h>

#include <array>
#include <set>
#include <thread>

#include "boost/algorithm/string.hpp"
#include "boost/iterator/counting_iterator.hpp"
#include "boost/lexical_cast.hpp"
#include "caffe/layer.hpp"
#include "caffe/util/benchmark.hpp"
#include "caffe/util/cufft.hpp"
#include "caffe/util/io.hpp"
#include "caffe/util/rng.hpp"
#include "helpers.hpp"

static void test_legacy_names() {
  vector<string> parts;
  string text = "  a,b,,c ";
  boost::trim(text);
  boost::split(parts, text, boost::is_any_of(","));
  say("split", boost::join(parts, "|"));
  say("lexical_cast",
      boost::lexical_cast<string>(0.1f) + " " + std::to_string(boost::lexical_cast<int>("12")));
  try {
    boost::lexical_cast<int>("12x");
  } catch (const boost::bad_lexical_cast& error) {
    say("bad_cast", error.what());
  }
}

static void test_boosts_words() {
  string text;
  for (const auto compress : {boost::token_compress_off, boost::token_compress_on}) {
    for (const char* given : {"", ",", "a", ",a,,b;", "a,;c"}) {
      vector<string> parts{"before"};
      text += boost::join(boost::split(parts, given, boost::is_any_of(",;"), compress), "|") + " ";
    }
  }
  for (string given : {"", " ", "  a b ", "xaxbx"}) {
    string other = given;
    boost::trim_if(other, boost::is_any_of("x"));
    boost::trim(given);
    text += "(" + given + ")(" + other + ")";
  }
  string upper = "aZ1", lower = upper;
  boost::to_upper(upper), boost::to_lower(lower);
  text += " " + upper + lower + " ";
  for (const char* part : {"", "a", "b", "ab", "abc", "bc"})
    text += std::to_string(boost::starts_with("ab", part)) + std::to_string(boost::ends_with("ab", part));
  say("boost_strings",
      text + std::to_string(boost::iequals("aB", "Ab")) + std::to_string(boost::iequals("a", "ab")));
  text.clear();
  auto at = boost::make_counting_iterator(10);
  const auto first = at, last = first + 8;
  const auto add = [&](int number) { text += std::to_string(number) + " "; };
  add(*at++), add(*at), add(*++at), add(*at--), add(*at), add(*--at), add(*(at += 4)), add(*(at -= 3)),
      add(at[2]);
  add(*(at + 3)), add(*(at - 1)), add(int(last - at)), add(int(at - last)),
      add(*boost::counting_iterator<int>());
  for (const auto& other : {first, at, last}) {
    text += std::to_string(at == other) + std::to_string(at != other) + std::to_string(at < other);
    text += std::to_string(at > other) + std::to_string(at <= other) + std::to_string(at >= other) + " ";
  }
  say("counting", text);
}

// What a fork may ask of a device where there is none.
static void test_device() {
  void* memory = nullptr;
  bool pinned = true;
  CaffeMallocHost(&memory, 0, &pinned);
  say("stream", Caffe::cuda_stream() == current_stream() ? "the call's" : "another");
  say("device", string(memory && !pinned ? "memory " : "none ") + std::to_string(Caffe::CheckDevice(0)) +
                    std::to_string(Caffe::CheckDevice(1)) + " " + std::to_string(Caffe::FindDevice()) + " " +
                    std::to_string(Caffe::FindDevice(1)));
  CaffeFreeHost(memory, pinned);
}

template <typename Wanted, typename Got>
static string is(Got value) {
  return std::to_string(value) + (std::is_same<Wanted, Got>::value ? "" : " of another type");
}

static void test_shuffle() {
  vector<int> values;
  for (int i = 0; i < 20; ++i) values.push_back(i);
  const vector<int> before = values;
  int moved = 0;
  for (int round = 0; round < 50; ++round) {
    shuffle(values.begin(), values.end());
    moved += values != before;
    std::set<int> all(values.begin(), values.end());
    if (all.size() != 20 || *all.begin() != 0 || *all.rbegin() != 19) moved = -1000;
  }
  vector<int> none, one{7};
  shuffle(none.begin(), none.end());
  shuffle(one.begin(), one.end());
  say("shuffle", moved == 50 && one[0] == 7 ? "a permutation" : "something else");
}

static void test_microsofts_names() {
  char text[8];
  _snprintf(text, sizeof(text), "%d", 12);
  say("microsofts", string(text) + (_access("/", 0) == 0 ? " there" : " not there"));
}

static void test_mixed_max() {
  using std::max;
  using std::min;
  const float x = 1;
  say("mixed_max", is<double>(max(x, 2.)) + " " + is<double>(max(3., x)) + " " + is<double>(min(x, 2.)));
  say("max_as_told", is<float>(max<float>(x, 2.)) + " " + is<float>(max(x, 2.f)) + " " + is<int>(max(1, 2)));
}

static void test_timer() {
  const auto rest = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  CPUTimer timer;
  string text =
      list(std::array<float, 1>{timer.MicroSeconds()}.data(), 1) + (timer.running() ? " runs" : " rests");
  timer.Start();
  rest();
  timer.Start();  // it runs already
  text += timer.running() && timer.has_run_at_least_once() ? " runs" : " rests";
  timer.Stop();
  const float once = timer.MilliSeconds();
  rest();
  timer.Stop();  // it stands already
  text += once >= 20 && timer.MilliSeconds() == once ? " 20 ms" : " wrong";
  const bool same =
      std::abs(timer.Seconds() * 1000 - once) < 1e-3 * once && timer.MicroSeconds() / 1000 == once;
  text += same && !timer.running() ? " same" : " wrong";
  say("timer", text);
}

static void test_files() {
  string folder, one, two;
  MakeTempDir(&folder);
  MakeTempFilename(&one);
  MakeTempFilename(&two);
  const auto there = [](const string& name) { return std::ifstream(name).good(); };
  say("temporary", (there(folder) ? "a folder " : "nothing ") + one.substr(one.size() - 10) + " " +
                       two.substr(two.size() - 10) + (there(one) || there(two) ? " there" : " free"));
  BlobShape shape, read;
  shape.add_dim(3);
  shape.add_dim(500);
  WriteProtoToBinaryFile(shape, one);
  const bool good = ReadProtoFromBinaryFile(one, &read);
  say("binary_file", (good ? "read " : "refused ") + std::to_string(read.dim(1)));
  std::ofstream(one) << "\x0a\x7f";  // a length of 127, and nothing after it
  say("broken_file", ReadProtoFromBinaryFile(one, &read) ? "read" : "refused");
  say("no_file", caught([&] { ReadProtoFromBinaryFile("/nowhere/file", &read); }));
  say("no_text", caught([&] { ReadProtoFromTextFile("/nowhere/file", &read); }));
  say("no_text_here", caught([&] { ReadProtoFromTextFile("nowhere/file", &read); }));
  say("no_place", caught([&] { WriteProtoToBinaryFile(shape, "/nowhere/file"); }));
  say("no_place_for_text", caught([&] { WriteProtoToTextFile(shape, "/nowhere/file"); }));
  static string said;
  const auto log = host_services.log;
  host_services.log = [](int64_t, const char* text) { said = text; };
  host_services.text = [](int64_t, const char*, int64_t, const char*, const char*, int64_t, auto take,
                          void* to) -> int64_t { return take(to, "dims", 4), 1; };
  said = "nothing";
  WriteProtoToTextFile(shape, one);
  string read_back, words = "there: " + said;
  WriteProtoToTextFile(shape, "/nowhere/file");
  std::ifstream written(one);
  std::getline(written, read_back);
  say("what_is_said_of_text", words + ", " + read_back + ", /nowhere/file: " + said);
  host_services.log = log;
  host_services.text = nullptr;
  remove(one.c_str());
  remove(one.substr(0, one.rfind('/')).c_str());
  remove(folder.c_str());
}

#define PASSES(...) (caught([&] { __VA_ARGS__; }) == "nothing" ? "+" : "-")

static void test_checks_of_values() {
  string text;
  const char* words[] = {"a", "A", "b", nullptr};
  for (const char* a : {words[0], words[3]}) {
    for (const char* b : words) {
      text += string(PASSES(CHECK_STREQ(a, b))) + PASSES(CHECK_STRNE(a, b)) + PASSES(CHECK_STRCASEEQ(a, b)) +
              PASSES(CHECK_STRCASENE(a, b)) + " ";
    }
  }
  say("check_strings", text);
  text.clear();
  for (const double b : {1.0, 1 + 9e-16, 1 + 9e-15, 1 + 9e-7, 1 + 9e-6, 1.5, 0.5, 1.6, 0.4}) {
    text += string(PASSES(CHECK_DOUBLE_EQ(1.0, b))) + PASSES(CHECK_FLOAT_EQ(1.0, b)) +
            PASSES(CHECK_NEAR(1.0, b, 0.5)) + " ";
  }
  say("check_numbers", text);
  text.clear();
  for (const int b : {1, 2, 3}) {
    text += string(PASSES(CHECK_EQ(2, b))) + PASSES(CHECK_NE(2, b)) + PASSES(CHECK_LT(2, b)) +
            PASSES(CHECK_LE(2, b)) + PASSES(CHECK_GT(2, b)) + PASSES(CHECK_GE(2, b)) + " ";
  }
  say("check_order", text);
  text.clear();
  for (const string said :
       {"Not implemented", "x not implemented", "CPU: not implemented", "no GPU, NOT YET IMPLEMENTED",
        "yet implemented on the CPU", "not yet implemented", "Not Implemented Yet"}) {
    text += caught([&] { LOG(FATAL) << said; }).substr(0, 3) == "Not" ? "+" : "-";
  }
  say("says_not_implemented", text);
}

static void test_numbers_of_words() {
  const std::array<int, 8> severities{google::INFO,       google::WARNING,   google::ERROR,
                                      google::FATAL,      google::GLOG_INFO, google::GLOG_WARNING,
                                      google::GLOG_ERROR, google::GLOG_FATAL};
  say("severities", list(severities.data(), 8));
  const std::array<int, 5> blas{CblasRowMajor, CblasColMajor, CblasNoTrans, CblasTrans, CblasConjTrans};
  say("blas_words", list(blas.data(), 5));
  const std::array<int, 3> cublas{CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
  say("cublas_words", list(cublas.data(), 3));
  const std::array<int, 4> sides{Caffe::CPU, Caffe::GPU, TRAIN, TEST};
  say("sides_and_phases", list(sides.data(), 4));
}

// The element of each accessor, by default and by indices, and where the indices are refused.
static void test_places_in_a_blob() {
  Blob<double> blob(2, 3, 4, 5);
  for (int i = 0; i < 120; ++i) blob.mutable_cpu_data()[i] = i, blob.mutable_cpu_diff()[i] = 1000 + i;
  const auto read = [&](auto... at) {
    const std::array<double, 8> values{*blob.cpu_data_at(at...),         *blob.gpu_data_at(at...),
                                       *blob.cpu_diff_at(at...),         *blob.gpu_diff_at(at...),
                                       *blob.mutable_cpu_data_at(at...), *blob.mutable_gpu_data_at(at...),
                                       *blob.mutable_cpu_diff_at(at...), *blob.mutable_gpu_diff_at(at...)};
    return list(values.data(), 8) + " | ";
  };
  say("accessors", read() + read(1) + read(1, 2) + read(1, 2, 3) + read(1, 2, 3, 4));
  const vector<int> last{1, 2, 3, 4};
  const std::array<double, 4> values{blob.data_at(1, 2, 3, 4), blob.diff_at(1, 2, 3, 4), blob.data_at(last),
                                     blob.diff_at(last)};
  say("elements", list(values.data(), 4) + " " + std::to_string(blob.offset(vector<int>{1})) + " " +
                      std::to_string(blob.offset(vector<int>{1, 2})) + " " +
                      std::to_string(blob.offset(1, 1)));
  string text;
  // One behind the last is the end of a loop, to Caffe, in numbers; in a vector it is not.
  for (const int more : {0, 1, 2}) {
    for (int axis = 0; axis < 4; ++axis) {
      vector<int> at = last, below{0, 0, 0, 0};
      at[axis] += more, below[axis] -= more;
      text += string(PASSES(blob.offset(at[0], at[1], at[2], at[3]))) + PASSES(blob.offset(at)) +
              PASSES(blob.offset(below)) + " ";
    }
  }
  say("offsets", text + PASSES(blob.offset(-1)) + PASSES(blob.offset(vector<int>{0, 0, 0, 0, 0})));
  const Blob<double> deep(vector<int>{1, 1, 1, 1, 2});
  text.clear();
  for (const int axis : {-5, -4, -1, 0, 3, 4}) text += PASSES(blob.LegacyShape(axis));
  Blob<double> flat(vector<int>{6, 7});
  for (int axis = -4; axis < 4; ++axis) text += " " + std::to_string(flat.LegacyShape(axis));
  say("legacy_axes", text + PASSES(deep.num()) + PASSES(deep.shape(4)));
}

class Plain : public Layer<float> {
 public:
  Plain(const LayerParameter& param, bool shares) : Layer<float>(param), shares_(shares) {}
  bool ShareInParallel() const override { return shares_; }
  void Reshape(const vector<Blob<float>*>&, const vector<Blob<float>*>&) override {}

 protected:
  void Forward_cpu(const vector<Blob<float>*>&, const vector<Blob<float>*>&) override {}
  void Backward_cpu(const vector<Blob<float>*>&, const vector<bool>&, const vector<Blob<float>*>&) override {}

 private:
  const bool shares_;
};

static void test_what_layers_say_of_themselves() {
  LayerParameter param;
  param.set_name("one"), param.set_phase(TEST);
  Plain shared(param, true), plain(param, false);
  string text = shared.name() + " " + plain.type() + "|" + (plain.IsShared() ? "shared " : "own ");
  text +=
      string(PASSES(plain.SetShared(false))) + PASSES(plain.SetShared(true)) + PASSES(shared.SetShared(true));
  text += plain.IsShared() ? " shared" : " own";
  text += shared.IsShared() ? " shared " : " own ";
  text += std::to_string(plain.ExactNumBottomBlobs()) + std::to_string(plain.MinBottomBlobs()) +
          std::to_string(plain.MaxBottomBlobs()) + std::to_string(plain.ExactNumTopBlobs()) +
          std::to_string(plain.MinTopBlobs()) + std::to_string(plain.MaxTopBlobs()) + " ";
  plain.set_param_propagate_down(2, false);
  for (int i = 0; i < 4; ++i) text += plain.param_propagate_down(i) ? "+" : "-";
  text += plain.phase() == TEST ? " test" : " train";
  plain.set_phase(TRAIN);
  say("of_themselves", text + (plain.phase() == TRAIN ? " train" : " test") + " " +
                           std::to_string(plain.loss(3)) + " " + (plain.AutoTopBlobs() ? "auto" : "given"));
}

// CUDA's own functions, as a fork calls them on the host.
static void test_cuda() {
  string text;
  for (const cudaError_t error : {cudaSuccess, cudaErrorInvalidValue, cudaErrorMemoryAllocation,
                                  cudaErrorInvalidConfiguration, static_cast<cudaError_t>(12345)})
    text += string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error) + ", ";
  say("cuda_errors", text);
  cudaDeviceProp properties;
  int device = -1, count = 0, threads = 0, processors = 0;
  text = std::to_string(cudaGetDevice(&device) + cudaGetDeviceCount(&count) +
                        cudaGetDeviceProperties(&properties, 0) +
                        cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, 0) +
                        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  text += string(" ") + properties.name + " ";
  const std::array<int, 9> numbers{device,
                                   count,
                                   threads,
                                   properties.major,
                                   properties.minor,
                                   properties.maxThreadsPerBlock,
                                   properties.warpSize,
                                   processors - cores,
                                   properties.multiProcessorCount - cores};
  say("cuda_device", text + list(numbers.data(), 9) + " " + cudaGetErrorName(cudaSetDevice(0)) + " " +
                         cudaGetErrorName(cudaSetDevice(1)));
  int *memory = nullptr, copies[4] = {1, 2, 3, 4};
  cudaStream_t stream = reinterpret_cast<cudaStream_t>(1);
  cudaError_t all[] = {cudaMalloc(&memory, sizeof copies),
                       cudaMemcpy(memory, copies, sizeof copies, cudaMemcpyHostToDevice),
                       cudaMemset(memory + 1, 1, sizeof(int)),
                       cudaStreamCreate(&stream),
                       cudaMemsetAsync(memory + 2, 0, sizeof(int), stream),
                       cudaMemcpyAsync(copies, memory, sizeof copies, cudaMemcpyDeviceToHost, stream),
                       cudaStreamSynchronize(stream),
                       cudaDeviceSynchronize(),
                       cudaStreamDestroy(stream),
                       cudaFree(memory)};
  text.clear();
  for (const cudaError_t error : all) text += error == cudaSuccess ? "" : "an error ";
  say("cuda_memory", text + list(copies, 4) + (stream ? " stream" : " default"));
  int* none = nullptr;
  text = cudaGetErrorName(cudaMalloc(&none, size_t(1) << 62));
  text += none ? " there " : " null ";
  text += cudaGetErrorName(cudaMalloc(&none, 0));
  say("cuda_no_memory", text + (none ? " there" : " null"));
  cudaFree(none);
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  cudaEventRecord(begin);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  cudaEventRecord(end);
  float milliseconds = 0;
  const bool right = cudaEventSynchronize(end) == cudaSuccess &&
                     cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess &&
                     cudaEventDestroy(begin) == cudaSuccess && cudaEventDestroy(end) == cudaSuccess;
  say("cuda_events",
      right && milliseconds >= 20 && milliseconds < 2000 ? "20 ms" : std::to_string(milliseconds));
}

// Numbers that are drawn without Python, into the host's memory and into a device's.
static void test_random() {
  string text;
  for (const int device : {-1, 0}) {
    for (int kind = 0; kind < 3; ++kind) {
      float floats[64];
      double doubles[64];
      uint32_t words[64];
      host_services.set_seed(7);
      const auto draw = [&](void* to, int dtype) {
        text += host_services.random(kind, to, 63, dtype, device, kind == 2 ? 0.25 : 2, 3) ? "+" : "-";
      };
      floats[63] = doubles[63] = words[63] = 9;
      draw(floats, 0), draw(doubles, 1), draw(words, 2);
      const auto within = [&](const auto* x) {
        double low = x[0], high = x[0], sum = 0;
        for (int i = 0; i < 63; ++i)
          low = std::min<double>(low, x[i]), high = std::max<double>(high, x[i]), sum += x[i];
        const double mean = sum / 63;
        const bool right = kind == 0   ? low >= 2 && low < 2.2 && high <= 3 && high > 2.8
                           : kind == 1 ? low < -2 && high > 6 && mean > 1 && mean < 3
                                       : low == 0 && high == 1 && mean > 0.1 && mean < 0.4;
        text += right && x[63] == 9 ? "+" : "-";
      };
      within(floats), within(doubles);
      if (kind == 2) within(words);
      text += " ";
    }
  }
  say("random_without_python", text);
}

// A message within another, written to before anybody has read it.
static void test_message() {
  BlobProto given, got;
  given.mutable_shape()->add_dim(3);
  string bytes;
  given.SerializeToString(&bytes);
  got.ParseFromString(bytes);
  got.mutable_shape()->add_dim(4);
  say("written_before_read", list(got.shape().dim().data(), got.shape().dim_size()));
}

static vector<int64_t> asked;  // of torch.fft

// What cuFFT's calls ask of torch.fft: batch; of input and output the distance and the strides; the sizes.
static void test_transforms() {
  cufftComplex in[2], out[2];
  cufftHandle plan = 0;
  string text;
  const auto exec = [&] { return cufftExecC2C(plan, in, out, CUFFT_INVERSE); };
  say("no_fft", caught([&] { cufftPlan1d(&plan, 8, CUFFT_C2C, 3), exec(); }));
  host_services.fft = [](const int64_t* words, int64_t axes) -> int64_t {
    asked.assign(words, words + 8 + 3 * axes);
    return 1;
  };
  const auto show = [&](cufftResult done, bool same = false) {
    const bool there = asked[3] == reinterpret_cast<int64_t>(in) &&
                       asked[4] == reinterpret_cast<int64_t>(same ? in : out) &&
                       asked[2] == call_context.device;
    text += (done == CUFFT_SUCCESS && there ? "" : "failed ") + list(asked.data(), 2) + ": " +
            list(asked.data() + 5, static_cast<int>(asked.size()) - 5) + ", ";
  };
  cufftReal* reals = reinterpret_cast<cufftReal*>(in);
  int sizes[] = {2, 3, 5, 7}, wide[] = {4, 9};
  cufftPlan1d(&plan, 8, CUFFT_C2C, 3), show(exec());
  cufftPlan2d(&plan, 4, 6, CUFFT_C2C), show(exec());
  cufftPlan3d(&plan, 2, 3, 5, CUFFT_C2C), show(exec());
  cufftPlan2d(&plan, 4, 6, CUFFT_R2C), show(cufftExecR2C(plan, reals, out)),
      show(cufftExecR2C(plan, reals, in), true);
  cufftPlanMany(&plan, 2, sizes, wide, 2, 100, wide, 3, 200, CUFFT_C2C, 5), show(exec());
  cufftPlanMany(&plan, 2, sizes, wide, 2, 100, nullptr, 3, 200, CUFFT_C2C, 5), show(exec());
  say("transforms", text);
  const auto many = [&](cufftHandle* to, int rank, int* n, int batch) {
    return cufftPlanMany(to, rank, n, nullptr, 0, 0, nullptr, 0, 0, CUFFT_C2C, batch);
  };
  int none[] = {2, 0};
  text = list(
      std::array<int, 9>{many(nullptr, 1, sizes, 1), many(&plan, 1, nullptr, 1), many(&plan, 0, sizes, 1),
                         many(&plan, 4, sizes, 1), many(&plan, 3, sizes, 1), many(&plan, 1, sizes, 0),
                         many(&plan, 2, none, 1), many(&plan, 1, none, 1), cufftSetStream(plan, nullptr)}
          .data(),
      9);
  text +=
      " | " +
      list(std::array<int, 6>{cufftExecR2C(plan, reals, out), cufftExecC2C(plan, nullptr, out, CUFFT_FORWARD),
                              cufftExecC2C(plan, in, nullptr, CUFFT_FORWARD), cufftExecC2C(plan, in, out, 0),
                              cufftExecC2C(plan, in, out, CUFFT_FORWARD), exec()}
               .data(),
           6);
  host_services.fft = [](const int64_t*, int64_t) -> int64_t { return 0; };
  text += " | " + list(std::array<int, 3>{exec(), cufftDestroy(plan), cufftDestroy(plan)}.data(), 3);
  say("no_transforms", text);
}

// A BLAS that is not there, and what cuBLAS's statuses are called.
static void test_libraries() {
  float x[1] = {2}, y[1] = {3};
  host_services.blas_library = "/nowhere/libblas.so";
  const string said =
      caught([&] { caffe_cpu_gemm<float>(CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, x, x, 0, y); });
  say("no_blas", said.substr(0, said.find("so: ") + 4));
  string text;
  for (const int status : {0, 1, 3, 7, 8, 11, 13, 14, 15, 16, 99})
    text += string(cublasGetErrorString(static_cast<cublasStatus_t>(status))) + " ";
  cudaStream_t stream = reinterpret_cast<cudaStream_t>(1);
  text +=
      std::to_string(cublasSetStream(nullptr, nullptr)) + std::to_string(cublasGetStream(nullptr, &stream));
  say("cublas_statuses", text + (stream ? " another" : " default"));
}

static void test_words() {
  test_legacy_names();
  test_boosts_words();
  test_shuffle();
  test_device();
  test_microsofts_names();
  test_mixed_max();
  test_timer();
  test_files();
  test_checks_of_values();
  test_numbers_of_words();
  test_places_in_a_blob();
  test_what_layers_say_of_themselves();
  test_cuda();
  test_random();
  test_message();
  test_transforms();
  test_libraries();
}
