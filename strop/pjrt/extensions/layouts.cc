// Layouts as text ("{1,0}"): of buffers, of a program's parameters and results, and of what a shape gets by default.
#include <map>
#include <mutex>

#include "strop/pjrt/executable.h"
#include "strop/pjrt/extensions.h"
#include "strop/pjrt/slots.h"

struct PJRT_Layouts_MemoryLayout {
  std::string text;
  bool immortal = false;
};
struct PJRT_Layouts_SerializedLayout {};  // the text lives with the layout

namespace strop::pjrt {
namespace {

constexpr int kMaxRank = 64;
constexpr int64_t kFewDims = 8;

// Row-major ones are asked for with each array that a program hands out: those of few dimensions are there.
PJRT_Layouts_MemoryLayout* RowMajor(int64_t rank) {
  static PJRT_Layouts_MemoryLayout* const kLayouts = [] {
    auto* layouts = new PJRT_Layouts_MemoryLayout[kFewDims + 1];
    for (int64_t r = 0; r <= kFewDims; ++r) layouts[r] = {Layout::RowMajor(r).ToString(), true};
    return layouts;
  }();
  if (rank <= kFewDims) return &kLayouts[rank];
  return new PJRT_Layouts_MemoryLayout{Layout::RowMajor(rank).ToString()};
}

// Layouts of executables are the executable's own in the interface. There are few different ones, so one immortal
// object a layout serves all; those that callers destroy are made for them.
PJRT_Layouts_MemoryLayout* Shared(const Layout& layout) {
  struct Table {
    std::mutex mutex;
    std::map<std::string, PJRT_Layouts_MemoryLayout> layouts;
  };
  static Table* const kTable = new Table;
  std::string text = layout.ToString();
  std::lock_guard<std::mutex> lock(kTable->mutex);
  return &kTable->layouts.try_emplace(text, PJRT_Layouts_MemoryLayout{text, true}).first->second;
}

Status DestroyLayout(PJRT_Layouts_MemoryLayout_Destroy_Args& args) {
  if (args.layout && !args.layout->immortal) delete args.layout;
  return OkStatus();
}

Status SerializeLayout(PJRT_Layouts_MemoryLayout_Serialize_Args& args) {
  args.serialized_bytes = args.layout->text.data();
  args.serialized_bytes_size = args.layout->text.size();
  args.serialized_layout = nullptr;
  args.serialized_layout_deleter = [](PJRT_Layouts_SerializedLayout*) {};
  return OkStatus();
}

template <class Args>
Status DefaultLayout(Args& args) {
  if (args.num_dims > kMaxRank) return InvalidArgument("a shape of rank ", args.num_dims);
  args.layout = RowMajor(static_cast<int64_t>(args.num_dims));
  return OkStatus();
}

Status BufferLayout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args& args) {
  const Shape& shape = args.buffer->shape();
  const bool row_major = !shape.has_layout() || shape.layout() == Layout::RowMajor(shape.rank());
  args.layout = row_major ? RowMajor(shape.rank()) : new PJRT_Layouts_MemoryLayout{shape.layout().ToString()};
  return OkStatus();
}

Status OutputLayouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args& args) {
  const Program& program = *args.executable->program;
  args.num_outputs = program.output_layouts.size();
  args.layouts = const_cast<PJRT_Layouts_MemoryLayout**>(program.output_layouts.data());  // the interface has no const
  return OkStatus();
}

Status ParameterLayouts(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args& args) {
  const Program& program = *args.executable->program;
  args.num_parameters = program.parameter_layouts.size();
  args.layouts = const_cast<PJRT_Layouts_MemoryLayout**>(program.parameter_layouts.data());
  return OkStatus();
}

}  // namespace

std::vector<PJRT_Layouts_MemoryLayout*> LayoutsOf(const std::vector<Shape>& shapes) {
  std::vector<PJRT_Layouts_MemoryLayout*> layouts;
  for (const Shape& shape : shapes) layouts.push_back(Shared(shape.layout_or_default()));
  return layouts;
}

PJRT_Extension_Base* LayoutsExtension(PJRT_Extension_Base* next) {
  using Client = PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args;
  using Topology = PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args;
  static PJRT_Layouts_Extension extension = {
      {sizeof(PJRT_Layouts_Extension), PJRT_Extension_Type_Layouts, nullptr},
      &Entry<PJRT_Layouts_MemoryLayout_Destroy_Args, &DestroyLayout, "PJRT_Layouts_MemoryLayout_Destroy", false>,
      &Entry<PJRT_Layouts_MemoryLayout_Serialize_Args, &SerializeLayout, "PJRT_Layouts_MemoryLayout_Serialize">,
      &Entry<Client, &DefaultLayout<Client>, "PJRT_Layouts_PJRT_Client_GetDefaultLayout">,
      &Entry<PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, &BufferLayout, "PJRT_Layouts_PJRT_Buffer_MemoryLayout">,
      &Entry<Topology, &DefaultLayout<Topology>, "PJRT_Layouts_PJRT_Topology_GetDefaultLayout">,
      &Entry<PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, &OutputLayouts,
             "PJRT_Layouts_PJRT_Executable_GetOutputLayouts">,
      &Entry<PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, &ParameterLayouts,
             "PJRT_Layouts_PJRT_Executable_GetParameterLayouts">};
  extension.base.next = next;
  return &extension.base;
}

}  // namespace strop::pjrt
