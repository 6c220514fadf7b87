#include "boost/scoped_ptr.hpp"
#include "boost/shared_array.hpp"
#include "boost/shared_ptr.hpp"
