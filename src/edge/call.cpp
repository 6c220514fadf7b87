// The calls of every layer: a Python extension of its own (cuffi/runtime/_call.abi3.so).
//
// This file has its types for Python. call_launcher.h calls C functions, and call_short.h operators, by plans. A wing
// adds functions of its own (methods.h). The extension uses neither torch's C++ nor a layer's library: call_torch.h
// reads torch's tensors, and C functions are called by their addresses.
#include "call_launcher.h"
#include "call_short.h"
#include "methods.h"

namespace caffe {

PyTypeObject* plan_type;

// ----------------------------------------------------------------------------------- the methods of a Short

// add(arguments, plan): run calls with such arguments by this plan from now on.
PyObject* short_add(PyObject* object, PyObject* const* given, Py_ssize_t count) {
  Short& s = *self_of<Short>(object);
  if (count != 2 || !PyTuple_Check(given[0]) || Py_TYPE(given[1]) != plan_type ||
      PyTuple_Size(given[0]) != s.count()) {
    PyErr_SetString(PyExc_TypeError, "add takes the arguments and a Plan");
    return nullptr;
  }
  PyObject* arguments[kMostArguments];
  for (Py_ssize_t i = 0; i < s.count(); ++i) arguments[i] = PyTuple_GetItem(given[0], i);
  Signature signature;
  if (describe(s, arguments, &signature)) {
    const uint64_t hash = signature.hash();
    Entry* entry = s.table.find(hash, signature);
    if (!entry) entry = s.table.add(hash, signature);
    Py_INCREF(given[1]);
    entry->planned = true;
    Py_XDECREF(std::exchange(entry->plan, given[1]));
  }
  Py_RETURN_NONE;
}

// The number of plans.
Py_ssize_t short_length(PyObject* object) {
  return static_cast<Py_ssize_t>(self_of<Short>(object)->table.size());
}

PyObject* short_plans(PyObject* object, PyObject*) {
  return PyLong_FromSize_t(self_of<Short>(object)->table.plans());
}

PyObject* short_clear_plans(PyObject* object, PyObject*) {
  self_of<Short>(object)->table.clear();
  Py_RETURN_NONE;
}

// differentiate(**values): set the autograd node of calls that need a gradient.
PyObject* short_differentiate(PyObject* object, PyObject*, PyObject* values) {
  PyObject* const by = values ? Named(values).object("by") : nullptr;
  if (by == nullptr || (by != Py_None && Py_TYPE(by) != Py_TYPE(object))) {
    PyErr_SetString(PyExc_TypeError, "differentiate takes apply, save, backward, and by: a Short or None");
    return nullptr;
  }
  if (!self_of<Short>(object)->take(kApply, kRegistered, Named(values))) return nullptr;
  Py_RETURN_NONE;
}

// in_torch(registered=, autograd=, op=): set what runs calls in torch.ops that are not clear.
PyObject* short_in_torch(PyObject* object, PyObject*, PyObject* values) {
  if (!self_of<Short>(object)->take(kRegistered, kRoles, Named(values))) return nullptr;
  Py_RETURN_NONE;
}

// ----------------------------------------------------------------------------------------- Python's types

template <typename T>
int traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  const T* self = self_of<T>(object);
  return self ? self->traverse(visit, arg) : 0;
}

template <typename T>
int clear(PyObject* object) {
  if (T* self = self_of<T>(object)) self->clear();
  return 0;
}

template <typename T>
void deallocate(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear<T>(object);
  delete self_of<T>(object);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

// Launcher(**values), Short(**values) and Plan(**values)
template <typename T>
PyObject* create(PyTypeObject* type, PyObject*, PyObject* values) {
  if (values == nullptr) return PyErr_SetString(PyExc_TypeError, "takes values by name"), nullptr;
  PyObject* object = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (object == nullptr) return nullptr;
  self_of<T>(object) = new T(Named(values));
  if (PyErr_Occurred()) Py_CLEAR(object);
  return object;
}

// configure({name: value}): the values of struct Torch.
PyObject* configure(PyObject*, PyObject* named) {
  const Torch given(named);
  if (PyErr_Occurred()) return nullptr;
  Py_INCREF(named);  // never released
  torch = given;
  Py_RETURN_NONE;
}

PyMethodDef short_methods[] = {
    {"add", PY_METHOD(short_add), METH_FASTCALL,
     "add(arguments, plan): such calls are that plan from now on"},
    {"forward", PY_METHOD(short_forward), METH_FASTCALL, "forward(ctx, *arguments): of the autograd node"},
    {"backward", PY_METHOD(short_backward), METH_FASTCALL, "backward(ctx, *top_diffs): of the autograd node"},
    {"differentiate", PY_METHOD(short_differentiate), METH_VARARGS | METH_KEYWORDS,
     "differentiate(apply=, save=, backward=, by=)"},
    {"kernel", PY_METHOD(short_kernel), METH_VARARGS | METH_KEYWORDS, "kernel of the device's key"},
    {"autograd", PY_METHOD(short_autograd), METH_VARARGS | METH_KEYWORDS, "kernel of the key Autograd"},
    {"op", PY_METHOD(short_op), METH_VARARGS | METH_KEYWORDS, "what OpOverload calls"},
    {"in_torch", PY_METHOD(short_in_torch), METH_VARARGS | METH_KEYWORDS,
     "in_torch(registered=, autograd=, op=)"},
    {"plans", short_plans, METH_NOARGS, "How many of them have a plan."},
    {"clear", short_clear_plans, METH_NOARGS, "Forget all plans."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot short_slots[] = {{Py_tp_new, reinterpret_cast<void*>(create<Short>)},
                             {Py_tp_call, reinterpret_cast<void*>(short_call)},
                             {Py_tp_methods, short_methods},
                             {Py_mp_length, reinterpret_cast<void*>(short_length)},
                             {Py_tp_traverse, reinterpret_cast<void*>(traverse<Short>)},
                             {Py_tp_clear, reinterpret_cast<void*>(clear<Short>)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(deallocate<Short>)},
                             {0, nullptr}};
PyType_Slot plan_slots[] = {{Py_tp_new, reinterpret_cast<void*>(create<Plan>)},
                            {Py_tp_traverse, reinterpret_cast<void*>(traverse<Plan>)},
                            {Py_tp_clear, reinterpret_cast<void*>(clear<Plan>)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(deallocate<Plan>)},
                            {0, nullptr}};
PyMethodDef launcher_methods[] = {
    {"attempt", PY_METHOD(launcher_attempt), METH_FASTCALL,
     "attempt(*arguments): the result, or NotImplemented if in doubt"},
    {"too_small", PY_METHOD(launcher_too_small), METH_FASTCALL,
     "too_small(*arguments): the parameter whose tensor is too small, and the sizes that it should have; or "
     "None"},
    {"attach", launcher_attach, METH_VARARGS, "attach(device_type, run, is_program, set_num_threads)"},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot launcher_slots[] = {{Py_tp_new, reinterpret_cast<void*>(create<Launcher>)},
                                {Py_tp_call, reinterpret_cast<void*>(launcher_call)},
                                {Py_tp_methods, launcher_methods},
                                {Py_tp_traverse, reinterpret_cast<void*>(traverse<Launcher>)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear<Launcher>)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(deallocate<Launcher>)},
                                {0, nullptr}};
constexpr unsigned kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
// Bases of Python classes, whose objects have a name and a signature.
PyType_Spec short_spec = {"_call.Short", sizeof(Holder<Short>), 0, kFlags | Py_TPFLAGS_BASETYPE, short_slots};
PyType_Spec plan_spec = {"_call.Plan", sizeof(Holder<Plan>), 0, kFlags, plan_slots};
PyType_Spec launcher_spec = {"_call.Launcher", sizeof(Holder<Launcher>), 0, kFlags | Py_TPFLAGS_BASETYPE,
                             launcher_slots};
PyMethodDef module_methods[] = {
    {"configure", configure, METH_O, "configure(values): the parts of torch, by name"},
    {"images", kernels_images, METH_VARARGS, "images(images, kernels, symbols, file, targets)"},
    {"program", kernels_program, METH_VARARGS,
     "program(images, steps, registers, parameters, data, local_bytes, symbols, stream)"},
    {"compute", kernels_compute, METH_VARARGS, "compute(program, words): the launch, for tests"},
    {"kernels_error", kernels_text, METH_NOARGS, "the text of this thread's last failed launch"},
    {"driver", kernels_driver, METH_O, "driver(path): where NVIDIA's driver is"},
    {nullptr, nullptr, 0, nullptr}};
// What launcher.py, planning.py and operator.py in cuffi/runtime pass.
constexpr std::pair<const char*, int> constants[] = {
    {"TENSOR", kTensor},
    {"LIKE", kLike},
    {"DTYPE", kDtype},
    {"STREAM", kStream},
    {"INTEGER", kInteger},
    {"UNSIGNED64", kUnsigned64},
    {"FLOAT", kFloat32},
    {"DOUBLE", kFloat64},
    {"BOOL", kTruth},
    {"IS_WRITTEN", kIsWritten},
    {"MAY_BE_NULL", kMayBeNull},
    {"NUMBER", Formula::kNumber},
    {"PARAMETER", Formula::kParameter},
    {"ADD", Formula::kAdd},
    {"SUBTRACT", Formula::kSubtract},
    {"MULTIPLY", Formula::kMultiply},
    {"DIVIDE", Formula::kDivide},
    {"NEGATE", Formula::kNegate},
    {"CONSTANT", kConstant},
    {"ARGUMENT", kArgument},
    {"ALLOCATION", kAllocation},
    {"CURRENT_STREAM", kCurrentStream},
    {"CAST_PROMOTE", kPromote},
    {"CAST_LOWER", kToLower},
    {"CAST_FLOAT32", kToFloat},
    {"CAST_NONE", kToNothing},
    {"MOST_PARAMETERS", kMostArguments},
    {"MOST_REGISTERS", steps::kMostRegisters},
    {"MOST_LOCAL", steps::kMostLocal},
    {"DATA_AT", steps::kDataAt},
    {"LOCAL_AT", steps::kLocalAt},
};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_call",
                          "The calls of layers.",
                          -1,
                          module_methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace caffe

PyMODINIT_FUNC PyInit__call() {
  PyObject* module = PyModule_Create(&caffe::definition);
  PyObject* const plan = module ? PyType_FromSpec(&caffe::plan_spec) : nullptr;
  PyObject* const launcher = plan ? PyType_FromSpec(&caffe::launcher_spec) : nullptr;
  PyObject* const one = launcher ? PyType_FromSpec(&caffe::short_spec) : nullptr;
  if (one == nullptr) return nullptr;
  caffe::plan_type = reinterpret_cast<PyTypeObject*>(plan);
  Py_INCREF(plan);
  if (PyModule_AddObject(module, "Plan", plan) || PyModule_AddObject(module, "Launcher", launcher) ||
      PyModule_AddObject(module, "Short", one) || PyModule_AddStringConstant(module, "EDGE", CAFFE_EDGE))
    return nullptr;
  if (PyModule_AddObject(module, "OPERATIONS", caffe::kernels_operations())) return nullptr;
  for (const auto& [name, value] : caffe::constants)
    if (PyModule_AddIntConstant(module, name, value)) return nullptr;
  for (const caffe::Methods* wing = caffe::Methods::first; wing; wing = wing->next)
    if (PyModule_AddFunctions(module, wing->table)) return nullptr;
  return module;
}
