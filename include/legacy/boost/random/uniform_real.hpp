#include "boost/random.hpp"
