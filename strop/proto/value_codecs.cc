// Shapes, layouts, metadata, frontend attributes.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "strop/proto/codecs.h"

namespace strop::codec {
namespace {

void EncodeLayout(const Layout& layout, proto::LayoutProto* out) {
  FromDims(layout.minor_to_major, out->mutable_minor_to_major());
  const LayoutExtra& extra = layout.extras();
  for (const Tile& tile : extra.tiles) FromDims(tile.dims, out->add_tiles()->mutable_dimensions());
  out->set_tail_padding_alignment_in_elements(extra.tail_padding_alignment);
  out->set_element_size_in_bits(extra.element_size_in_bits);
  out->set_memory_space(extra.memory_space);
  out->set_index_primitive_type(static_cast<int>(extra.index_primitive_type));
  out->set_pointer_primitive_type(static_cast<int>(extra.pointer_primitive_type));
  out->set_dynamic_shape_metadata_prefix_bytes(extra.dynamic_shape_metadata_prefix_bytes);
  for (const SplitConfig& split : extra.split_configs) {
    auto* config = out->add_split_configs();
    config->set_dimension(split.dimension);
    FromDims(split.split_indices, config->mutable_split_indices());
  }
}

Layout DecodeLayout(const proto::LayoutProto& in) {
  Layout layout;
  layout.minor_to_major.assign(in.minor_to_major().begin(), in.minor_to_major().end());
  LayoutExtra extra;
  for (const auto& tile : in.tiles()) extra.tiles.push_back(Tile{ToDims(tile.dimensions())});
  if (in.tail_padding_alignment_in_elements() != 0)
    extra.tail_padding_alignment = in.tail_padding_alignment_in_elements();
  extra.element_size_in_bits = in.element_size_in_bits();
  extra.memory_space = in.memory_space();
  extra.index_primitive_type = ElementTypeFromNumber(in.index_primitive_type()).value_or(ElementType::Invalid);
  extra.pointer_primitive_type = ElementTypeFromNumber(in.pointer_primitive_type()).value_or(ElementType::Invalid);
  extra.dynamic_shape_metadata_prefix_bytes = in.dynamic_shape_metadata_prefix_bytes();
  for (const auto& split : in.split_configs())
    extra.split_configs.push_back(SplitConfig{split.dimension(), ToDims(split.split_indices())});
  if (!(extra == LayoutExtra())) layout.extra = std::make_shared<const LayoutExtra>(std::move(extra));
  return layout;
}

}  // namespace

std::string Serialize(const google::protobuf::MessageLite& message) {
  std::string out;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return out;
}

void Encode(const Shape& shape, proto::ShapeProto* out) {
  out->set_element_type(static_cast<int>(shape.type()));
  if (shape.IsTuple()) {
    for (const Shape& element : shape.elements()) Encode(element, out->add_tuple_shapes());
    return;
  }
  FromDims(shape.dims(), out->mutable_dimensions());
  for (int64_t i = 0; i < shape.rank(); ++i) out->add_is_dynamic_dimension(shape.is_dynamic(i));
  if (shape.has_layout()) EncodeLayout(shape.layout(), out->mutable_layout());
}

Result<Shape> Decode(const proto::ShapeProto& in) {
  std::optional<ElementType> type = ElementTypeFromNumber(in.element_type());
  if (!type) return InvalidArgument("shape with unknown element type ", in.element_type());
  if (*type == ElementType::Tuple) {
    if (in.dimensions_size() != 0) return InvalidArgument("tuple shape with ", in.dimensions_size(), " dimensions");
    std::vector<Shape> elements;
    for (const auto& element : in.tuple_shapes()) {
      STROP_ASSIGN(Shape decoded, Decode(element));
      elements.push_back(std::move(decoded));
    }
    return Shape::Tuple(std::move(elements));
  }
  if (*type == ElementType::Token) return Shape::Token();
  if (*type == ElementType::Opaque) return Shape::Opaque();
  if (in.tuple_shapes_size() != 0) return InvalidArgument("shape of ", Name(*type), " with tuple elements");
  if (in.dimensions_size() > 64)
    return InvalidArgument("shape of rank ", in.dimensions_size(), ", at most 64 is supported");
  if (in.is_dynamic_dimension_size() != 0 && in.is_dynamic_dimension_size() != in.dimensions_size())
    return InvalidArgument("shape of rank ", in.dimensions_size(), " with ", in.is_dynamic_dimension_size(),
                           " dynamic-dimension flags");
  Shape shape = Shape::Array(*type, Int64Vector(in.dimensions().begin(), in.dimensions().end()));
  for (int i = 0; i < in.is_dynamic_dimension_size(); ++i)
    if (in.is_dynamic_dimension(i)) shape.set_dynamic(i, true);
  if (in.has_layout()) {
    Layout layout = DecodeLayout(in.layout());
    if (static_cast<int64_t>(layout.minor_to_major.size()) != shape.rank())
      return InvalidArgument("layout of ", layout.minor_to_major.size(), " dimensions on a shape of rank ",
                             shape.rank());
    shape.set_layout(std::move(layout));
  }
  STROP_TRY(shape.Validate());
  return shape;
}

void Encode(const OpMetadata& metadata, proto::OpMetadata* out) {
  out->set_op_type(metadata.op_type);
  out->set_op_name(metadata.op_name);
  out->set_source_file(metadata.source_file);
  out->set_source_line(static_cast<int32_t>(metadata.source_line));
  out->set_source_end_line(static_cast<int32_t>(metadata.source_end_line));
  out->set_source_column(static_cast<int32_t>(metadata.source_column));
  out->set_source_end_column(static_cast<int32_t>(metadata.source_end_column));
  out->set_stack_frame_id(static_cast<int32_t>(metadata.stack_frame_id));
  out->set_size_of_generated_code_in_bytes(metadata.size_of_generated_code_in_bytes);
  out->set_size_of_memory_working_set_in_bytes(metadata.size_of_memory_working_set_in_bytes);
  FromDims(metadata.profile_type, out->mutable_profile_type());
  out->set_deduplicated_name(metadata.deduplicated_name);
  out->set_scheduling_name(metadata.scheduling_name);
}

OpMetadata Decode(const proto::OpMetadata& in) {
  OpMetadata out;
  out.op_type = in.op_type();
  out.op_name = in.op_name();
  out.source_file = in.source_file();
  out.source_line = in.source_line();
  out.source_end_line = in.source_end_line();
  out.source_column = in.source_column();
  out.source_end_column = in.source_end_column();
  out.stack_frame_id = in.stack_frame_id();
  out.size_of_generated_code_in_bytes = in.size_of_generated_code_in_bytes();
  out.size_of_memory_working_set_in_bytes = in.size_of_memory_working_set_in_bytes();
  out.profile_type = ToDims(in.profile_type());
  out.deduplicated_name = in.deduplicated_name();
  out.scheduling_name = in.scheduling_name();
  return out;
}

void Encode(const FrontendAttributes& attributes, proto::FrontendAttributes* out) {
  for (const auto& [key, value] : attributes) (*out->mutable_map())[key] = value;
}

FrontendAttributes Decode(const proto::FrontendAttributes& in) {
  FrontendAttributes out;
  for (const auto& [key, value] : in.map()) out[key] = value;
  return out;
}

}  // namespace strop::codec
