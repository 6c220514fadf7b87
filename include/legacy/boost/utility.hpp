#include "boost/next_prior.hpp"
