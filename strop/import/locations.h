// MLIR locations to HLO metadata: JAX's name stack is the op_name, the innermost file gives source_file and
// source_line, and the chain of calls becomes stack frames in the module's tables.
//
//   loc("jit(f)/add"(callsite("f"("a.py":3:4 to :9) at "g"("a.py":7:0))))
//     metadata={op_name="jit(f)/add" source_file="a.py" source_line=3 ... stack_frame_id=2}
#pragma once
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "strop/import/mlir.h"
#include "strop/ir/module.h"

namespace strop {

class Locations {
 public:
  // Null where the location says nothing. The same location gives the same object.
  std::shared_ptr<const OpMetadata> Metadata(const MlirAttr* loc);
  StackFrames TakeFrames() { return std::move(frames_); }

 private:
  int64_t FrameId(const MlirAttr* frame, int64_t parent);
  int64_t NameId(std::map<std::string, int64_t, std::less<>>& ids, std::vector<std::string>& names,
                 std::string_view name);

  std::unordered_map<const MlirAttr*, std::shared_ptr<const OpMetadata>> cache_;
  StackFrames frames_;
  std::map<std::string, int64_t, std::less<>> files_, functions_;
  std::map<std::vector<int64_t>, int64_t> file_locations_;
  std::map<std::pair<int64_t, int64_t>, int64_t> frame_ids_;
};

}  // namespace strop
