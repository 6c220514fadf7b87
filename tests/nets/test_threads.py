"""Many threads at once, from the first call on: caches that are not filled yet, and one net that all call.

Without the GIL (3.14t) nothing else keeps them apart. With it, the interpreter here changes threads as often as it can.
"""

import sys

import pytest
from support import python_with_torch

SCRIPT = '''
import sys, threading, warnings
import numpy as np, torch
from cuffi import caffe, caffe_net, dnn
from cuffi.nets.python2 import Tree

sys.setswitchinterval(1e-6)
torch.set_num_threads(1)
warnings.simplefilter("ignore")
folder = sys.argv[1]
NET = """input: "x" input_shape { dim: 1 dim: 2 dim: 6 dim: 6 }
layer { name: "c" type: "Convolution" bottom: "x" top: "c" param { name: "w" }
  convolution_param { num_output: 2 kernel_size: 3 pad: 1 bias_term: false
    weight_filler { type: "constant" value: 0.1 } } }
layer { name: "b" type: "BatchNorm" bottom: "c" top: "b" }
layer { name: "s" type: "Scale" bottom: "b" top: "s" scale_param { bias_term: true } }
layer { name: "r" type: "ReLU" bottom: "s" top: "s" }
layer { name: "d" type: "Convolution" bottom: "s" top: "d" param { name: "w" }
  convolution_param { num_output: 2 kernel_size: 3 bias_term: false } }
layer { name: "l" type: "LRN" bottom: "d" top: "l" }
layer { name: "p" type: "Pooling" bottom: "l" top: "p" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "v" type: "Normalize" bottom: "p" top: "v" norm_param { across_spatial: false } }
layer { name: "y" type: "Softmax" bottom: "v" top: "y" }
"""
x = np.linspace(-1, 1, 72, dtype=np.float32).reshape(1, 2, 6, 6)

def one(number):
    net = caffe_net(NET)
    path = f"{folder}/{number}"
    net.save_caffemodel(f"{path}.caffemodel")
    open(f"{path}.prototxt", "w").write(NET)
    found = [net(torch.from_numpy(x)).detach().numpy()]
    opened = dnn.readNetFromCaffe(f"{path}.prototxt", f"{path}.caffemodel")
    opened.setInput(x)
    found.append(opened.forward())
    classic = caffe.Net(f"{path}.prototxt", f"{path}.caffemodel", caffe.TEST)
    classic.blobs["x"].data[...] = x
    found.append(classic.forward()["y"].copy())
    old = "def f(a):\\n    print a,\\n    return [a / 2 for a in xrange(a)], {1: 2}.has_key(1)\\n"
    open(f"{path}_old.py", "w").write(old)
    found.append(np.array(Tree([folder], {}).module(f"{number}_old").f(9)[0]))
    spec = caffe.NetSpec()
    spec.x = caffe.layers.Input(shape=dict(dim=[1, 2]))
    spec.y = caffe.layers.ReLU(spec.x)
    found.append(np.frombuffer(str(spec.to_proto()).encode(), np.uint8))
    try:
        caffe_net(NET.replace("LRN", "Nothing"))
    except ValueError as error:
        found.append(np.frombuffer(str(error).encode(), np.uint8))
    return found

def together(function, number=8):
    results, barrier = [None] * number, threading.Barrier(number)
    def run(i):
        barrier.wait()
        try:
            results[i] = function(i)
        except BaseException as error:
            results[i] = error
    threads = [threading.Thread(target=run, args=(i,)) for i in range(number)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    for result in results:
        if isinstance(result, BaseException): raise result
    return results

apart = together(one)
alone = one(99)
assert len(alone) == 6
for found in apart:
    for got, wanted in zip(found, alone, strict=True):
        assert got.shape == wanted.shape and (got == wanted).all(), (got, wanted)

shared = caffe_net(NET)
wanted = shared(torch.from_numpy(x)).detach()
def call(number):
    return all(torch.equal(shared(torch.from_numpy(x)), wanted) for _ in range(20))
assert all(together(call))
print("same")
'''


@pytest.mark.parametrize("run", range(3))
def test_threads_compute_what_one_computes(tmp_path, run):
    pytest.importorskip("fissix")
    done = python_with_torch.run([sys.executable, "-c", SCRIPT, str(tmp_path)])
    assert done.returncode == 0 and done.stdout.endswith("same\n"), done.stdout + done.stderr
