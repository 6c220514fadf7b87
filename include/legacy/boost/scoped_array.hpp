#include "boost/scoped_ptr.hpp"
