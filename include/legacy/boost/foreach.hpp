#pragma once

#define BOOST_FOREACH(variable, range) for (variable : range)
