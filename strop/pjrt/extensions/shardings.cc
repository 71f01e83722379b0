// Shardings of parameters and results, as serialised xla.OpSharding.
#include "strop/pjrt/executable.h"
#include "strop/pjrt/extensions.h"
#include "strop/pjrt/slots.h"

namespace strop::pjrt {
namespace {

Status ParameterShardings(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args& args) {
  const Program::Leaves& leaves = args.executable->program->parameters;
  args.num_parameters = leaves.shapes.size();
  args.shardings = leaves.sharding_data.data();
  args.sharding_sizes = leaves.sharding_sizes.data();
  return OkStatus();
}

Status OutputShardings(PJRT_Shardings_PJRT_Executable_OutputShardings_Args& args) {
  const Program::Leaves& leaves = args.executable->program->outputs;
  args.num_outputs = leaves.shapes.size();
  args.shardings = leaves.sharding_data.data();
  args.sharding_sizes = leaves.sharding_sizes.data();
  return OkStatus();
}

}  // namespace

PJRT_Extension_Base* ShardingsExtension(PJRT_Extension_Base* next) {
  static PJRT_Shardings_Extension extension = {
      {sizeof(PJRT_Shardings_Extension), PJRT_Extension_Type_Shardings, nullptr},
      &Entry<PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, &ParameterShardings,
             "PJRT_Shardings_PJRT_Executable_ParameterShardings">,
      &Entry<PJRT_Shardings_PJRT_Executable_OutputShardings_Args, &OutputShardings,
             "PJRT_Shardings_PJRT_Executable_OutputShardings">};
  extension.base.next = next;
  return &extension.base;
}

}  // namespace strop::pjrt
