// What the programs of this folder say, and how.
#ifndef CAFFE_CORE_HELPERS_HPP_
#define CAFFE_CORE_HELPERS_HPP_

#include <stdio.h>

#include <functional>
#include <sstream>
#include <string>

#include "caffe/common.hpp"

using namespace caffe;

static void say(const string& name, const string& text) { printf("%s\t%s\n", name.c_str(), text.c_str()); }

template <typename T>
static string list(const T* values, int count) {
  std::ostringstream text;
  for (int i = 0; i < count; ++i) text << (i ? " " : "") << values[i];
  return text.str();
}

// The exception's kind and its text from the second colon on: the line number is nobody's business.
static string caught(const std::function<void()>& body) {
  try {
    body();
  } catch (const NotImplemented& error) {
    return string("NotImplemented ") + error.what();
  } catch (const Fatal& error) {
    const string text = error.what();
    return text.substr(0, text.find(':')) + text.substr(text.find(": "));
  } catch (const std::exception& error) {
    return string("other: ") + error.what();
  }
  return "nothing";
}

#endif
