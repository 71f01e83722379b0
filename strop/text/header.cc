// `HloModule name, attribute=value, ...` and the stack frame tables below it.
#include "strop/text/attr_parse.h"
#include "strop/text/module_parser.h"

namespace strop {
namespace {

// Attributes that nothing in Strop reads; kept and printed as they came.
constexpr std::string_view kKept[] = {"alias_passthrough_params", "origin_recovery_table", "debug_attributes"};
constexpr std::string_view kKnown[] = {"is_scheduled",
                                       "replica_count",
                                       "num_partitions",
                                       "input_output_alias",
                                       "buffer_donor",
                                       "entry_computation_layout",
                                       "frontend_attributes",
                                       "allow_spmd_sharding_propagation_to_parameters",
                                       "allow_spmd_sharding_propagation_to_output",
                                       "alias_passthrough_params",
                                       "origin_recovery_table",
                                       "debug_attributes"};

Status ParseCount(Cursor& at, int64_t& count) {
  const size_t start = at.offset();
  if (!at.Int(count)) return at.Expected("an integer");
  if (count < 1 || count > kMaxDevices)
    return at.ErrorAt(start, "expected a count of 1 to ", kMaxDevices, ", found ", count);
  return OkStatus();
}

}  // namespace

Status ModuleParser::ParseHeader() {
  const std::string_view name = Name();
  if (name.empty()) return at_.Expected("the name of the module");
  module_->set_name(std::string(name));
  at_.Consume(':');  // XLA takes a name with a colon behind it for the name
  std::vector<std::string_view> seen;
  while (at_.Consume(',')) {
    const std::string_view attribute = at_.PeekWord();
    const size_t offset = at_.offset();
    if (attribute.empty()) return at_.Expected("a module attribute");
    for (std::string_view s : seen)
      if (s == attribute) return at_.Error("module attribute ", attribute, " is given twice");
    seen.push_back(attribute);
    at_.Word();
    STROP_TRY(at_.Expect('='));
    STROP_TRY(ParseHeaderAttribute(attribute, offset));
  }
  return ParseStackFrames();
}

Status ModuleParser::ParseHeaderAttribute(std::string_view name, size_t offset) {
  ModuleConfig& config = module_->config();
  for (std::string_view kept : kKept) {
    if (name != kept) continue;
    Verbatim value;
    STROP_TRY(ParseAttr(at_, value));
    config.other_attributes.emplace_back(name, value.text);
    return OkStatus();
  }
  if (name == "is_scheduled") return ParseAttr(at_, config.is_scheduled);
  if (name == "replica_count") return ParseCount(at_, config.replica_count);
  if (name == "num_partitions") {
    STROP_TRY(ParseCount(at_, config.num_partitions));
    config.use_spmd_partitioning = config.num_partitions > 1;
    return OkStatus();
  }
  if (name == "input_output_alias") return ParseAliases();
  if (name == "buffer_donor") return ParseDonors();
  if (name == "entry_computation_layout") return ParseEntryLayout();
  if (name == "frontend_attributes") return ParseFrontendAttributes(at_, config.frontend_attributes);
  if (name == "allow_spmd_sharding_propagation_to_parameters")
    return ParseAttr(at_, config.allow_spmd_sharding_propagation_to_parameters);
  if (name == "allow_spmd_sharding_propagation_to_output")
    return ParseAttr(at_, config.allow_spmd_sharding_propagation_to_output);
  const std::string_view near = Nearest(name, {std::begin(kKnown), std::end(kKnown)});
  return at_.ErrorAt(offset, "a module has no attribute '", name, "'", near.empty() ? "" : "; did you mean ", near);
}

// {(shape, shape)->shape}
Status ModuleParser::ParseEntryLayout() {
  EntryLayout layout;
  STROP_TRY(at_.Expect('{'));
  STROP_TRY(at_.Expect('('));
  if (!at_.Consume(')')) {
    do {
      STROP_ASSIGN(Shape parameter, ParseShape(at_));
      layout.parameters.push_back(parameter.WithDefaultLayout());
    } while (at_.Consume(','));
    STROP_TRY(at_.Expect(')'));
  }
  if (!at_.Consume("->")) return at_.Expected("'->' and the shape of the result");
  STROP_ASSIGN(Shape result, ParseShape(at_));
  layout.result = result.WithDefaultLayout();
  module_->config().has_entry_layout = true;
  module_->config().entry_layout = std::move(layout);
  return at_.Expect('}');
}

// { {0}: (1, {}, may-alias), ... }
Status ModuleParser::ParseAliases() {
  STROP_TRY(at_.Expect('{'));
  while (!at_.Consume('}')) {
    InputOutputAlias alias;
    STROP_TRY(ParseShapeIndex(at_, alias.output_index));
    STROP_TRY(at_.Expect(':'));
    STROP_TRY(at_.Expect('('));
    if (!at_.Int(alias.parameter)) return at_.Expected("a parameter number");
    STROP_TRY(at_.Expect(','));
    STROP_TRY(ParseShapeIndex(at_, alias.parameter_index));
    if (at_.Consume(',')) {
      alias.must_alias = at_.ConsumeWord("must-alias");
      if (!alias.must_alias && !at_.ConsumeWord("may-alias")) return at_.Expected("may-alias or must-alias");
    }
    STROP_TRY(at_.Expect(')'));
    module_->config().input_output_alias.push_back(std::move(alias));
    if (!at_.Consume(',') && at_.Peek() != '}') return at_.Expected("',' or '}'");
  }
  return OkStatus();
}

// { (0, {}), ... }
Status ModuleParser::ParseDonors() {
  STROP_TRY(at_.Expect('{'));
  while (!at_.Consume('}')) {
    BufferDonor donor;
    STROP_TRY(at_.Expect('('));
    if (!at_.Int(donor.parameter)) return at_.Expected("a parameter number");
    STROP_TRY(at_.Expect(','));
    STROP_TRY(ParseShapeIndex(at_, donor.parameter_index));
    STROP_TRY(at_.Expect(')'));
    module_->config().buffer_donors.push_back(std::move(donor));
    if (!at_.Consume(',') && at_.Peek() != '}') return at_.Expected("',' or '}'");
  }
  return OkStatus();
}

// ---- stack frames
// ---------------------------------------------------------------------------------------------------------

// Lines of `1 "text"`.
Status ModuleParser::ParseNumbered(std::vector<std::string>& names) {
  int64_t id;
  while (at_.Int(id)) {
    STROP_ASSIGN(std::string name, at_.String());
    names.push_back(std::move(name));
  }
  return OkStatus();
}

// {field=3 field=4 ...}: all of `fields`, in any order.
Status ModuleParser::ParseRecord(std::initializer_list<std::pair<std::string_view, int64_t*>> fields) {
  STROP_TRY(at_.Expect('{'));
  const size_t start = at_.offset();
  size_t found = 0;
  while (!at_.Consume('}')) {
    at_.Consume(',');
    const std::string_view name = at_.PeekWord();
    int64_t* value = nullptr;
    for (const auto& [known, slot] : fields)
      if (known == name) value = slot;
    if (!value) return at_.Expected(StrCat(fields.begin()->first, "= and its like, or '}'"));
    at_.Word();
    STROP_TRY(at_.Expect('='));
    if (!at_.Int(*value)) return at_.Expected("an integer");
    ++found;
  }
  if (found == fields.size()) return OkStatus();
  return at_.ErrorAt(start, "expected the ", fields.size(), " fields ", fields.begin()->first, "= ...");
}

Status ModuleParser::ParseStackFrames() {
  if (!at_.ConsumeWord("FileNames")) return OkStatus();
  StackFrames& frames = module_->config().stack_frames;
  STROP_TRY(ParseNumbered(frames.file_names));
  if (!at_.ConsumeWord("FunctionNames")) return at_.Expected("FunctionNames");
  STROP_TRY(ParseNumbered(frames.function_names));
  if (!at_.ConsumeWord("FileLocations")) return at_.Expected("FileLocations");
  int64_t id;
  while (at_.Int(id)) {
    StackFrames::FileLocation& l = frames.file_locations.emplace_back();
    STROP_TRY(ParseRecord({{"file_name_id", &l.file_name_id},
                           {"function_name_id", &l.function_name_id},
                           {"line", &l.line},
                           {"end_line", &l.end_line},
                           {"column", &l.column},
                           {"end_column", &l.end_column}}));
  }
  if (!at_.ConsumeWord("StackFrames")) return at_.Expected("StackFrames");
  while (at_.Int(id)) {
    StackFrames::Frame& f = frames.frames.emplace_back();
    STROP_TRY(ParseRecord({{"file_location_id", &f.file_location_id}, {"parent_frame_id", &f.parent_frame_id}}));
    if (f.parent_frame_id > 0) --f.parent_frame_id;  // the text counts "none" as 1
  }
  return OkStatus();
}

}  // namespace strop
