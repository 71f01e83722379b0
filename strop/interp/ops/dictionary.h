// Values out of the dictionary texts that custom calls carry: {tolerance = 1.0e-1 : f64},
// {scale=[0.1,0.2],storage_min=-128}.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "strop/base/status.h"

namespace strop::interp {

// The text of a key's value, without its `: type`; nullopt if the key is not there.
std::optional<std::string_view> FindValue(std::string_view dictionary, std::string_view key);
// As a number, as text without quotes, or as a list (a single value is a list of one).
Result<double> NumberOr(std::string_view dictionary, std::string_view key, double otherwise);
std::string_view TextOr(std::string_view dictionary, std::string_view key, std::string_view otherwise);
Result<std::vector<double>> Numbers(std::string_view dictionary, std::string_view key);

}  // namespace strop::interp
