#include "strop/import/locations.h"

namespace strop {
namespace {

constexpr size_t kMaxFrames = 1024;

// A frame of the user's stack: a file, or the name of a function around one.
bool IsFrame(const MlirAttr& loc) {
  if (loc.kind == MlirAttrKind::FileLoc) return true;
  return loc.kind == MlirAttrKind::NameLoc && !loc.elements.empty() && loc.elements[0]->kind == MlirAttrKind::FileLoc;
}

// The frames of a location, innermost first.
void CollectFrames(const MlirAttr* loc, std::vector<const MlirAttr*>& frames) {
  std::vector<const MlirAttr*> stack = {loc};
  for (size_t budget = 4 * kMaxFrames; !stack.empty() && budget > 0 && frames.size() < kMaxFrames; --budget) {
    const MlirAttr* l = stack.back();
    stack.pop_back();
    if (IsFrame(*l)) {
      frames.push_back(l);
    } else if (l->kind == MlirAttrKind::CallSiteLoc) {
      stack.push_back(l->elements[1]);
      stack.push_back(l->elements[0]);
    } else if ((l->kind == MlirAttrKind::NameLoc || l->kind == MlirAttrKind::FusedLoc) && !l->elements.empty()) {
      stack.push_back(l->elements[0]);
    }
  }
}

}  // namespace

int64_t Locations::NameId(std::map<std::string, int64_t, std::less<>>& ids, std::vector<std::string>& names,
                          std::string_view name) {
  auto it = ids.find(name);
  if (it != ids.end()) return it->second;
  names.emplace_back(name);
  int64_t id = static_cast<int64_t>(names.size());
  ids.emplace(std::string(name), id);
  return id;
}

int64_t Locations::FrameId(const MlirAttr* frame, int64_t parent) {
  const MlirAttr* file = frame->kind == MlirAttrKind::FileLoc ? frame : frame->elements[0];
  StackFrames::FileLocation at;
  at.file_name_id = NameId(files_, frames_.file_names, file->text);
  at.function_name_id = NameId(functions_, frames_.function_names, frame == file ? std::string_view() : frame->text);
  at.line = static_cast<int64_t>(file->bits & 0xffffffff);
  at.column = static_cast<int64_t>(file->bits >> 32);
  at.end_line = file->range_end ? static_cast<int64_t>(file->range_end & 0xffffffff) : at.line;
  at.end_column = file->range_end ? static_cast<int64_t>(file->range_end >> 32) : at.column;
  auto [it, inserted] = file_locations_.emplace(
      std::vector<int64_t>{at.file_name_id, at.function_name_id, at.line, at.end_line, at.column, at.end_column},
      static_cast<int64_t>(frames_.file_locations.size()) + 1);
  if (inserted) frames_.file_locations.push_back(at);
  auto [frame_it, new_frame] =
      frame_ids_.emplace(std::pair(it->second, parent), static_cast<int64_t>(frames_.frames.size()) + 1);
  if (new_frame) frames_.frames.push_back({it->second, parent});
  return frame_it->second;
}

std::shared_ptr<const OpMetadata> Locations::Metadata(const MlirAttr* loc) {
  if (!loc || loc->kind == MlirAttrKind::UnknownLoc) return nullptr;
  auto [it, inserted] = cache_.try_emplace(loc);
  if (!inserted) return it->second;
  auto metadata = std::make_shared<OpMetadata>();
  // Fused locations join the names of their parts, as XLA does.
  std::vector<const MlirAttr*> parts = {loc};
  if (loc->kind == MlirAttrKind::FusedLoc) parts.assign(loc->elements.begin(), loc->elements.end());
  for (const MlirAttr* part : parts) {
    // A name around a frame is the function's, a name around anything else the op's; a name by itself is the op's as
    // well.
    if (part->kind != MlirAttrKind::NameLoc) continue;
    if (!metadata->op_name.empty()) metadata->op_name += ';';
    metadata->op_name += part->text;
  }
  const MlirAttr* place = loc->kind == MlirAttrKind::NameLoc && !loc->elements.empty() ? loc->elements[0] : loc;
  std::vector<const MlirAttr*> frames;
  CollectFrames(place, frames);
  if (!frames.empty()) {
    // A plain position in a file, as the text parser makes it, needs no stack.
    int64_t id = 0;
    bool stack = frames.size() > 1 || frames[0]->kind == MlirAttrKind::NameLoc;
    for (size_t i = frames.size(); stack && i-- > 0;) id = FrameId(frames[i], id);
    const MlirAttr* file = InnermostFile(frames[0]);
    metadata->source_file = std::string(file->text);
    metadata->source_line = static_cast<int64_t>(file->bits & 0xffffffff);
    metadata->source_column = static_cast<int64_t>(file->bits >> 32);
    metadata->source_end_line =
        file->range_end ? static_cast<int64_t>(file->range_end & 0xffffffff) : metadata->source_line;
    metadata->source_end_column =
        file->range_end ? static_cast<int64_t>(file->range_end >> 32) : metadata->source_column;
    metadata->stack_frame_id = id;
  }
  if (metadata->op_name.empty() && frames.empty()) return nullptr;
  cache_[loc] = metadata;
  return metadata;
}

}  // namespace strop
