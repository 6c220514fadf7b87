// Makes things and lets them go, many times over, and says of which of them memory is left behind.
#include <malloc.h>

#include "caffe/filler.hpp"
#include "caffe/net.hpp"
#include "helpers.hpp"

extern "C" {
#include "caffe_layer.h"
}

namespace caffe {

template <typename Dtype>
class KeepingLayer : public Layer<Dtype> {
 public:
  explicit KeepingLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    kept_.ReshapeLike(*bottom[0]);
    top[0]->ReshapeLike(*bottom[0]);
  }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    kept_.CopyFrom(*bottom[0]);
    top[0]->CopyFrom(kept_);
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>&, const vector<bool>&, const vector<Blob<Dtype>*>&) {}
  Blob<Dtype> kept_;
};
REGISTER_LAYER_CLASS(Keeping);

}  // namespace caffe

// What the program holds of malloc's memory.
static int64_t held() {
  const struct mallinfo now = mallinfo();
  return int64_t{now.uordblks} + now.hblkhd;
}

static const int kRounds = 100;

static void test(const string& name, const std::function<void()>& round) {
  for (int i = 0; i < 10; ++i) round();  // what is made once, and what malloc itself keeps
  const int64_t before = held();
  for (int i = 0; i < kRounds; ++i) round();
  const int64_t left = (held() - before) / kRounds;
  say("freed: " + name, left == 0 ? "all" : std::to_string(left) + " bytes are left");
}

static void test_memory() {
  test("host memory", [] {
    void* memory = nullptr;
    bool use_cuda = true;
    CaffeMallocHost(&memory, 5000, &use_cuda);
    CaffeFreeHost(memory, use_cuda);
  });
  test("CUDA's memory", [] {
    float* memory = nullptr;
    cudaMalloc(&memory, 5000), cudaFree(memory);
  });
  test("events", [] {
    cudaEvent_t event;
    cudaEventCreate(&event), cudaEventDestroy(event);
  });
  test("SyncedMemory", [] {
    char lent[400], other[400];
    SyncedMemory own(400), given(400), adopting(400), dropped(400), freed(400);
    own.mutable_cpu_data();
    given.mutable_cpu_data(), given.set_cpu_data(lent), given.set_gpu_data(other);
    adopting.mutable_gpu_data(), adopting.adopt(lent, 400, SyncedMemory::kDefined, false);
    adopting.mutable_cpu_data();  // copied first
    dropped.adopt(lent, 400, SyncedMemory::kDefined, true), dropped.drop(), dropped.mutable_cpu_data();
  });
  test("Blob", [] {
    Blob<float> blob(vector<int>{10}), shares, copies;
    blob.mutable_cpu_data(), blob.mutable_cpu_diff();
    blob.Reshape(vector<int>{3, 100});
    blob.mutable_cpu_data(), blob.mutable_gpu_diff(), blob.gpu_shape();
    shares.ReshapeLike(blob), shares.mutable_cpu_data();
    shares.ShareData(blob), shares.ShareDiff(blob);
    copies.CopyFrom(blob, false, true), copies.CopyFrom(blob, true);
    BlobProto proto;
    copies.ToProto(&proto, true), shares.FromProto(proto);
  });
}

// At once, and not with the object.
static void test_lent() {
  static char lent[5000];
  int64_t freed = 0;
  for (const auto set : {&SyncedMemory::set_cpu_data, &SyncedMemory::set_gpu_data}) {
    SyncedMemory memory(sizeof(lent));
    memory.mutable_cpu_data();
    const int64_t before = held();
    (memory.*set)(lent);
    freed += before - held() >= int64_t{sizeof(lent)};
  }
  say("freed: what lent memory stands for", freed == 2 ? "all" : "kept");
}

static void test_messages() {
  test("message", [] {
    LayerParameter param, other;
    param.set_name(string(100, 'a'));
    param.mutable_convolution_param()->add_kernel_size(3);
    for (const char* name : {"a", "b", "c", "d"}) param.add_bottom(name + string(100, 'x'));
    param.add_blobs()->add_data(3);
    other.CopyFrom(param), other.MergeFrom(param), other.Swap(&param);
    const LayerParameter moved = std::move(other);
    param.ParseFromString(moved.SerializeAsString());
    param.clear_name(), param.clear_convolution_param(), param.clear_blobs();
  });
  test("list", [] {
    RepeatedPtrField<string> list, other;
    for (int i = 0; i < 9; ++i) list.AddAllocated(new string(100, 'x'));
    other = list;
    list.SwapElements(0, 8), list.DeleteSubrange(2, 3), list.RemoveLast(), list.Swap(&other);
    list = std::move(other);
    other.Clear();
  });
}

static LayerParameter* add(NetParameter* net, const string& type, const string& bottom, const string& top) {
  LayerParameter* layer = net->add_layer();
  layer->set_type(type), layer->set_name(top), layer->add_top(top);
  if (!bottom.empty()) layer->add_bottom(bottom);
  return layer;
}

static void test_layers() {
  test("filler", [] {
    Blob<float> blob(vector<int>{4, 5});
    FillerParameter param;
    for (const char* type : {"constant", "gaussian", "positive_unitball", "uniform", "xavier", "msra"}) {
      param.set_type(type), param.set_sparse(string(type) == "gaussian" ? 2 : -1);
      shared_ptr<Filler<float>>(GetFiller<float>(param))->Fill(&blob);
    }
  });
  test("random numbers", [] {
    Caffe::set_random_seed(3);
    Caffe::RNG one(3), two(one);
    two.generator();
  });
  test("layer of a library", [] {
    vector<char> bytes(sizeof(caffe_call_record) + 2 * sizeof(caffe_blob_record));
    caffe_call_record* call = reinterpret_cast<caffe_call_record*>(bytes.data());
    float x[100] = {};
    const auto put = [&] {
      call->device = CAFFE_ON_HOST, call->bottoms = call->tops = 1;
      for (caffe_blob_record* blob : {call->blobs, call->blobs + 1}) {
        *blob = caffe_blob_record();
        blob->data_token = blob->diff_token = CAFFE_NO_TOKEN, blob->in_place_of = -1;
      }
      call->blobs[0].data = int64_t(x), call->blobs[0].axes = 1, call->blobs[0].shape[0] = 100;
    };
    const int64_t layer = caffe_layer_create("Keeping", "", 0, 0);
    put(), caffe_layer_setup(layer, call);
    for (int i = 0; i < 2; ++i) put(), caffe_layer_forward(layer, call);  // whose top nobody has memory for
    caffe_layer_destroy(layer);
  });
  test("net", [] {
    NetParameter param;
    add(&param, "Input", "", "x")->mutable_input_param()->add_shape()->add_dim(100);
    add(&param, "Power", "x", "y"), add(&param, "ReLU", "x", "z"), add(&param, "Keeping", "y", "u");
    Net<float> net(param);
    net.Forward();
    net.Reshape();
  });
}

// A copy of rows of other lengths, and what has one meaning on a GPU and none here: locked memory, a stream's flags.
static void test_rows() {
  int* rows = nullptr;
  int versions[2] = {};
  const int from[6] = {1, 2, 3, 4, 5, 6};
  cudaStream_t stream = reinterpret_cast<cudaStream_t>(1);
  cudaEvent_t event;
  const size_t pitch = 4 * sizeof(int), width = 2 * sizeof(int);
  const cudaError_t all[] = {
      cudaMallocHost(&rows, 2 * pitch),
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
      cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
      cudaMemset(rows, 0, 2 * pitch),
      cudaMemcpy2D(rows, pitch, from, width + sizeof(int), width, 2, cudaMemcpyDefault),
      cudaMemcpy2DAsync(rows + 3, pitch, from + 2, width, sizeof(int), 2, cudaMemcpyDefault, stream),
      cudaEventRecord(event, stream),
      cudaStreamWaitEvent(stream, event, 0),
      cudaDriverGetVersion(versions),
      cudaRuntimeGetVersion(versions + 1),
  };
  string text;
  for (const cudaError_t error : all) text += error == cudaSuccess ? "" : "an error ";
  text += list(rows, 8) + (stream ? " stream " : " default ");
  text += cudaGetErrorName(cudaMemcpy2D(rows, width, from, pitch, 3 * sizeof(int), 2, cudaMemcpyDefault));
  say("cuda_rows", text + " " + list(rows, 8) + " " + list(versions, 2));
  cudaEventDestroy(event);
  cudaFreeHost(rows);
}

int main() {
  test_memory();
  test_lent();
  test_messages();
  test_layers();
  test_rows();
}
