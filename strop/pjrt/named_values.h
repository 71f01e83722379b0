// PJRT_NamedValue lists with the memory that they point to.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "strop/pjrt/c_api.h"

namespace strop::pjrt {

class NamedValues {
 public:
  void Add(std::string name, std::string value) {
    PJRT_NamedValue& v = Next(std::move(name), PJRT_NamedValue_kString);
    const std::string& kept = texts_.emplace_back(std::move(value));
    v.value.string_value = kept.c_str();
    v.value_size = kept.size();
  }
  void Add(std::string name, int64_t value) { Next(std::move(name), PJRT_NamedValue_kInt64).value.int64_value = value; }
  void Add(std::string name, float value) { Next(std::move(name), PJRT_NamedValue_kFloat).value.float_value = value; }
  void Add(std::string name, std::vector<int64_t> values) {
    PJRT_NamedValue& v = Next(std::move(name), PJRT_NamedValue_kInt64List);
    const std::vector<int64_t>& kept = lists_.emplace_back(std::move(values));
    v.value.int64_array_value = kept.data();
    v.value_size = kept.size();
  }
  const PJRT_NamedValue* data() const { return values_.data(); }
  size_t size() const { return values_.size(); }

 private:
  PJRT_NamedValue& Next(std::string name, PJRT_NamedValue_Type type) {
    const std::string& kept = texts_.emplace_back(std::move(name));
    PJRT_NamedValue v = {};
    v.struct_size = kStructSize<PJRT_NamedValue>;
    v.name = kept.c_str();
    v.name_size = kept.size();
    v.type = type;
    v.value_size = 1;
    return values_.emplace_back(v);
  }
  std::deque<std::string> texts_;  // stable addresses
  std::deque<std::vector<int64_t>> lists_;
  std::vector<PJRT_NamedValue> values_;
};

}  // namespace strop::pjrt
