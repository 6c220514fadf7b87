// Runs one of a fork's own solvers: reads settings, parameters and gradients from stdin, writes the parameters.
#include "caffe/sgd_solvers.hpp"

namespace caffe {
shared_ptr<Net<double>> the_net = std::make_shared<Net<double>>();
}

template <typename T>
T next() {
  T value;
  std::cin >> value;
  return value;
}

int main() {
  using namespace caffe;
  const string type = next<string>();
  SolverParameter s;
  s.lr_policy_ = next<string>();
  s.regularization_type_ = next<string>();
  for (float* field : {&s.base_lr_, &s.gamma_, &s.power_, &s.momentum_, &s.weight_decay_, &s.clip_gradients_,
                       &s.delta_, &s.momentum2_, &s.rms_decay_}) {
    *field = next<float>();
  }
  for (int* field : {&s.stepsize_, &s.max_iter_, &s.iter_size_}) *field = next<int>();
  s.stepvalue_.resize(next<int>());
  for (int& value : s.stepvalue_) value = next<int>();
  const int count = next<int>();
  for (int i = 0; i < count; ++i) {
    the_net->owned.push_back(std::make_shared<Blob<double>>(vector<int>{next<int>()}));
    the_net->params.push_back(the_net->owned.back().get());
    the_net->lr.push_back(next<float>());
    the_net->decay.push_back(next<float>());
    Blob<double>& blob = *the_net->params.back();
    for (int j = 0; j < blob.count(); ++j) blob.mutable_cpu_data()[j] = next<double>();
  }
  shared_ptr<Solver<double>> solver;
  if (type == "SGD") solver.reset(new SGDSolver<double>(s));
  if (type == "Nesterov") solver.reset(new NesterovSolver<double>(s));
  if (type == "AdaGrad") solver.reset(new AdaGradSolver<double>(s));
  if (type == "RMSProp") solver.reset(new RMSPropSolver<double>(s));
  if (type == "AdaDelta") solver.reset(new AdaDeltaSolver<double>(s));
  if (type == "Adam") solver.reset(new AdamSolver<double>(s));
  std::cout.precision(17);
  for (int steps = next<int>(); steps > 0; --steps) {
    for (Blob<double>* blob : the_net->params) {
      for (int j = 0; j < blob->count(); ++j) blob->mutable_cpu_diff()[j] = next<double>();
    }
    solver->ApplyUpdate();
    for (Blob<double>* blob : the_net->params) {
      for (int j = 0; j < blob->count(); ++j) std::cout << blob->cpu_data()[j] << " ";
    }
  }
}
