// OpMetadata <-> text. One table of fields serves both directions; its order is that of XLA's printer.
#include <variant>

#include "strop/base/cursor.h"
#include "strop/types/sharding.h"

namespace strop {
namespace {

using StringField = std::string OpMetadata::*;
using IntField = int64_t OpMetadata::*;
using ListField = std::vector<int64_t> OpMetadata::*;

struct MetadataField {
  std::string_view name;
  std::variant<StringField, IntField, ListField> member;
};

const MetadataField kFields[] = {
    {"op_type", &OpMetadata::op_type},
    {"op_name", &OpMetadata::op_name},
    {"source_file", &OpMetadata::source_file},
    {"source_line", &OpMetadata::source_line},
    {"source_end_line", &OpMetadata::source_end_line},
    {"source_column", &OpMetadata::source_column},
    {"source_end_column", &OpMetadata::source_end_column},
    {"profile_type", &OpMetadata::profile_type},
    {"deduplicated_name", &OpMetadata::deduplicated_name},
    {"scheduling_name", &OpMetadata::scheduling_name},
    {"stack_frame_id", &OpMetadata::stack_frame_id},
    {"metadata_payload", &OpMetadata::metadata_payload},
};

Status ParseField(Cursor& at, const MetadataField& field, OpMetadata& metadata) {
  if (const StringField* member = std::get_if<StringField>(&field.member)) {
    STROP_ASSIGN(metadata.**member, at.String());
  } else if (const IntField* member = std::get_if<IntField>(&field.member)) {
    const size_t start = at.offset();
    int64_t value;
    if (!at.Int(value)) return at.Expected("an integer");
    if (value < INT32_MIN || value > INT32_MAX) return at.ErrorAt(start, field.name, " does not fit in 32 bits");
    metadata.** member = value;
  } else {
    STROP_ASSIGN(metadata.*std::get<ListField>(field.member), ParseIntList(at, '{', '}'));
  }
  return OkStatus();
}

}  // namespace

std::string MetadataText(const OpMetadata& metadata) {
  std::string out;
  auto begin = [&](std::string_view name) { StrAppend(out, out.empty() ? "" : " ", name, "="); };
  for (const MetadataField& field : kFields) {
    if (const StringField* member = std::get_if<StringField>(&field.member)) {
      if ((metadata.**member).empty()) continue;
      begin(field.name);
      StrAppend(out, "\"", CEscape(metadata.**member), "\"");
    } else if (const IntField* member = std::get_if<IntField>(&field.member)) {
      if (metadata.**member == 0) continue;
      begin(field.name);
      StrAppend(out, metadata.**member);
    } else {
      const std::vector<int64_t>& list = metadata.*std::get<ListField>(field.member);
      if (list.empty()) continue;
      begin(field.name);
      StrAppend(out, "{", Join(list, ","), "}");
    }
  }
  return out;
}

Result<OpMetadata> ParseMetadata(Cursor& at) {
  OpMetadata metadata;
  STROP_TRY(at.Expect('{'));
  while (!at.Consume('}')) {
    at.Consume(',');
    const std::string_view name = at.PeekWord();
    if (name.empty()) return at.Expected("a metadata field or '}'");
    const MetadataField* field = nullptr;
    std::vector<std::string_view> known;
    for (const MetadataField& f : kFields) {
      if (f.name == name) field = &f;
    }
    if (!field) {
      for (const MetadataField& f : kFields) known.push_back(f.name);
      const std::string_view near = Nearest(name, known);
      return at.Error("metadata has no field '", name, "'", near.empty() ? "" : "; did you mean ", near);
    }
    at.Word();
    STROP_TRY(at.Expect('='));
    STROP_TRY(ParseField(at, *field, metadata));
  }
  return metadata;
}

}  // namespace strop
