#include "strop/proto/value_proto.h"

#include "strop/proto/codecs.h"

namespace strop {
namespace {

template <class Proto>
auto ParseAs(std::string_view bytes, std::string_view what) -> decltype(codec::Decode(std::declval<const Proto&>())) {
  Proto proto;
  if (bytes.size() > INT32_MAX || !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return InvalidArgument("these ", bytes.size(), " bytes are no ", what);
  return codec::Decode(proto);
}

}  // namespace

Result<std::string> SerializeSharding(const Sharding& sharding) {
  proto::OpSharding out;
  STROP_TRY(codec::Encode(sharding, &out));
  return out.SerializeAsString();
}
Result<Sharding> ParseShardingProto(std::string_view bytes) { return ParseAs<proto::OpSharding>(bytes, "OpSharding"); }

std::string SerializeShape(const Shape& shape) {
  proto::ShapeProto out;
  codec::Encode(shape, &out);
  return out.SerializeAsString();
}
Result<Shape> ParseShapeProto(std::string_view bytes) { return ParseAs<proto::ShapeProto>(bytes, "ShapeProto"); }

std::string SerializeLiteral(const Literal& literal) {
  proto::LiteralProto out;
  codec::Encode(literal, &out);
  return out.SerializeAsString();
}
Result<Literal> ParseLiteralProto(std::string_view bytes) {
  return ParseAs<proto::LiteralProto>(bytes, "LiteralProto");
}

}  // namespace strop
