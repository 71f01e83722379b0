// Executions as XLA's flag xla_dump_hlo_snapshots wants them: arguments and results as literals, in a file each. For
// looking for mistakes: an execution that is written is waited for.
#pragma once
#include <span>
#include <vector>

#include "strop/pjrt/executable.h"
#include "strop/runtime/buffer.h"

namespace strop::pjrt {

// The contents of the buffers, in the order of the leaves of the program's parameters or result.
Result<std::vector<Literal>> ReadBuffers(std::span<Buffer* const> buffers);
// Nothing is written, and a warning logged, where it cannot be.
void WriteSnapshot(const Program& program, const Result<std::vector<Literal>>& arguments, std::span<Buffer> outputs);

}  // namespace strop::pjrt
