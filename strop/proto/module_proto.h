// Modules on the wire: HloModuleProto and the messages that wrap it.
//
// Reading refuses what is malformed (unknown opcodes, ids that do not exist or come too late, bad shapes, literals of
// the wrong size) with InvalidArgument that names the instruction; whether the module is *legal* is VerifyModule's
// question. The order of instructions must be topological, as XLA writes it, so cycles cannot be expressed.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strop/ir/module.h"

namespace strop {

Result<std::unique_ptr<Module>> ParseModuleProto(std::string_view bytes);            // HloModuleProto
Result<std::unique_ptr<Module>> ParseModuleProtoWithConfig(std::string_view bytes);  // HloModuleProtoWithConfig
// HloModuleProto, HloProto, HloSnapshot or HloModuleProtoWithConfig, whichever it is.
Result<std::unique_ptr<Module>> ParseAnyModuleProto(std::string_view bytes);

Result<std::string> SerializeModuleProto(const Module& module);
Result<std::string> SerializeHloProto(const Module& module);
Result<std::string> SerializeModuleProtoWithConfig(const Module& module);
// The same bytes with a word on how the parameters and results of a partitioned module, whose own shapes are those of a
// part, were cut: one serialised sharding each, empty for whole values.
Result<std::string> AddEntryShardings(std::string_view module_with_config, std::span<const std::string> parameters,
                                      std::span<const std::string> results);

// A HloSnapshot: a program (as of SerializeHloProto) and one execution of it.
Result<std::string> SerializeSnapshot(std::string_view hlo_proto, std::span<const Literal> arguments,
                                      const Literal& result, std::string_view platform);
// The arguments of a HloSnapshot; empty if the bytes are none.
Result<std::vector<Literal>> ParseSnapshotArguments(std::string_view bytes);

}  // namespace strop
