// Makes Strop the compiler of a running TensorFlow.
#pragma once
#include <functional>

#include "strop/base/status.h"
#include "strop/tensorflow/releases.h"

struct PJRT_Api;

namespace strop::tensorflow {

// Opens the PJRT plugin.
using OpenPlugin = std::function<Result<const PJRT_Api*>()>;

// Gives TensorFlow a client of the plugin for device type CPU, and has XLA's programs compiled with it. After an error
// TensorFlow is as it was.
Status Connect(const Framework& framework, const OpenPlugin& open);

}  // namespace strop::tensorflow
