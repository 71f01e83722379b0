// One codec a type, both ways, between our values and their protobufs. For the .cc files of this room only: the one
// header that shows .pb.h. Decoders check everything that a lie could break (ids, ranks, counts) before they allocate.
#pragma once
#include <string_view>

#include "strop/ir/module.h"
#include "strop/proto/hlo.pb.h"
#include "strop/proto/xla_data.pb.h"

namespace strop::codec {

template <class Repeated>
Dims ToDims(const Repeated& values) {
  return Dims(values.begin(), values.end());
}
template <class Values, class Repeated>
void FromDims(const Values& values, Repeated* out) {
  for (auto v : values) out->Add(static_cast<typename Repeated::value_type>(v));
}

// ---- value_codecs.cc
// Maps have no order of their own: equal messages give equal bytes.
std::string Serialize(const google::protobuf::MessageLite& message);
void Encode(const Shape& shape, proto::ShapeProto* out);
Result<Shape> Decode(const proto::ShapeProto& in);
void Encode(const OpMetadata& metadata, proto::OpMetadata* out);
OpMetadata Decode(const proto::OpMetadata& in);
void Encode(const FrontendAttributes& attributes, proto::FrontendAttributes* out);
FrontendAttributes Decode(const proto::FrontendAttributes& in);

// ---- literal_codec.cc
void Encode(const Literal& literal, proto::LiteralProto* out);
Result<Literal> Decode(const proto::LiteralProto& in);

// ---- sharding_codec.cc
Status Encode(const Sharding& sharding, proto::OpSharding* out);
Result<Sharding> Decode(const proto::OpSharding& in);

// ---- mesh_codec.cc: named shardings and meshes, which our types keep as text
// "mesh['x'=2,'y'=4], [{'x'}, {}], replicated={'y'}" (the inside of the braces)
std::string NamedShardingText(const proto::NamedShardingProto& in);
Status ParseNamedSharding(std::string_view text, proto::NamedShardingProto* out);
// "mesh['x'=2,'y'=4] {'x'}"
std::string MeshGroupsText(const proto::MeshAxesReplicaGroupListProto& in);
Status ParseMeshGroups(std::string_view text, proto::MeshAxesReplicaGroupListProto* out);

// ---- attribute_encode.cc, attribute_decode.cc: the fields of HloInstructionProto that are an op's attributes
Status EncodeAttributes(const Instruction& instruction, proto::HloInstructionProto* out);
// `operand_type` is the element type of operand 0 (Invalid without one): a comparison's default order depends on it.
Result<Attrs> DecodeAttributes(Op op, const proto::HloInstructionProto& in, ElementType operand_type);

// The order that a comparison of `type` has when none is given, and its name in protos.
CompareOrder DefaultOrder(ElementType type);

// Names of numbered or named enumerations in protos.
inline constexpr std::string_view kDirectionNames[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
inline constexpr std::string_view kOrderNames[] = {"", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
inline constexpr std::string_view kFusionNames[] = {"kLoop", "kInput", "kOutput", "kCustom"};
// PrecisionConfig.Algorithm by number, as HLO text spells it.
inline constexpr std::string_view kAlgorithmNames[] = {
    "",
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
    "dot_bf16_bf16_f32_x9",
};

}  // namespace strop::codec
