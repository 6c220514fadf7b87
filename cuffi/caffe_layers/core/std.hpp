// The standard headers that every Caffe file includes, and <random>: after precompiled headers it doubles the time of
// what follows, because it brings intrinsics. Only for precompilation (mk/rules.mk).
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
