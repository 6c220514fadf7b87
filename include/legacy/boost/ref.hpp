#include "boost/bind.hpp"
