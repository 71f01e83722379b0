// Reads each attribute *type* at the cursor: the inverse of ir/attr_text.h.
#pragma once
#include <map>
#include <string>

#include "strop/base/cursor.h"
#include "strop/ir/attrs.h"

namespace strop {

Status ParseAttr(Cursor& at, int64_t& v);
Status ParseAttr(Cursor& at, bool& v);
Status ParseAttr(Cursor& at, float& v);
Status ParseAttr(Cursor& at, std::string& v);
Status ParseAttr(Cursor& at, ChannelId& v);
Status ParseAttr(Cursor& at, Keyword& v);
Status ParseAttr(Cursor& at, Dims& v);
Status ParseAttr(Cursor& at, std::vector<Dims>& v);
Status ParseAttr(Cursor& at, std::vector<bool>& v);  // a single true or false is a list of one
Status ParseAttr(Cursor& at, Window& v);
Status ParseAttr(Cursor& at, ConvDimLabels& v);
Status ParseAttr(Cursor& at, PaddingConfig& v);
Status ParseAttr(Cursor& at, SliceDims& v);
Status ParseAttr(Cursor& at, PrecisionConfig& v);
Status ParseAttr(Cursor& at, OutputOperandAliasing& v);
Status ParseAttr(Cursor& at, SourceTargetPairs& v);
Status ParseAttr(Cursor& at, ReplicaGroups& v);
Status ParseAttr(Cursor& at, ResultAccuracy& v);
Status ParseAttr(Cursor& at, Verbatim& v);
Status ParseAttr(Cursor& at, Shape& v);
Status ParseAttr(Cursor& at, CompareDirection& v);
Status ParseAttr(Cursor& at, CompareOrder& v);
Status ParseAttr(Cursor& at, FftType& v);
Status ParseAttr(Cursor& at, FusionKind& v);
Status ParseAttr(Cursor& at, RngDistribution& v);
Status ParseAttr(Cursor& at, RngAlgorithm& v);
Status ParseAttr(Cursor& at, TransposeA& v);
Status ParseAttr(Cursor& at, CustomCallSchedule& v);
Status ParseAttr(Cursor& at, ApiVersion& v);
Status ParseAttr(Cursor& at, PaddingType& v);
Status ParseAttr(Cursor& at, std::vector<Window>& v);         // one, as a list
Status ParseAttr(Cursor& at, std::vector<ConvDimLabels>& v);  // one, as a list
Status ParseAttr(Cursor& at, std::vector<Literal>& v);        // one, as a list

// {key="value",other={"json":1}}
Status ParseFrontendAttributes(Cursor& at, std::map<std::string, std::string>& attributes);
// Quoted text, or a balanced {...} verbatim.
Status ParseStringOrJson(Cursor& at, std::string& v);
// {1,0}: the position of a leaf in a tuple.
Status ParseShapeIndex(Cursor& at, Dims& v);

}  // namespace strop
