// Single values on the wire: xla.OpSharding, xla.ShapeProto, xla.LiteralProto.
#pragma once
#include <string>
#include <string_view>

#include "strop/types/literal.h"
#include "strop/types/sharding.h"

namespace strop {

Result<std::string> SerializeSharding(const Sharding& sharding);
Result<Sharding> ParseShardingProto(std::string_view bytes);
std::string SerializeShape(const Shape& shape);
Result<Shape> ParseShapeProto(std::string_view bytes);
std::string SerializeLiteral(const Literal& literal);
Result<Literal> ParseLiteralProto(std::string_view bytes);

}  // namespace strop
