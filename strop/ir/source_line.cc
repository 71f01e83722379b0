// Frameworks hand over the innermost line that made an op: for PyTorch's layers one in torch/nn, which tells a user
// nothing. The frames of callers come with it.
#include "strop/ir/source_line.h"

#include "strop/ir/module.h"

namespace strop {
namespace {

bool IsInstalled(std::string_view file) {
  return file.find("/site-packages/") != std::string_view::npos ||
         file.find("/dist-packages/") != std::string_view::npos;
}

// The element of 1-based number `id`; null for a number that a program made up.
template <class T>
const T* At(const std::vector<T>& table, int64_t id) {
  return id > 0 && id <= static_cast<int64_t>(table.size()) ? &table[static_cast<size_t>(id - 1)] : nullptr;
}

}  // namespace

std::string SourceLine(const Instruction& instruction) {
  const OpMetadata& metadata = instruction.metadata();
  if (!IsInstalled(metadata.source_file) || !instruction.module()) return metadata.Location();
  const StackFrames& stack = instruction.module()->config().stack_frames;
  const StackFrames::Frame* frame = At(stack.frames, metadata.stack_frame_id);
  for (size_t depth = 0; frame && depth < stack.frames.size(); ++depth) {
    const StackFrames::FileLocation* at = At(stack.file_locations, frame->file_location_id);
    const std::string* file = at ? At(stack.file_names, at->file_name_id) : nullptr;
    if (file && !IsInstalled(*file)) return StrCat(*file, ":", at->line);
    frame = At(stack.frames, frame->parent_frame_id);
  }
  return metadata.Location();
}

}  // namespace strop
