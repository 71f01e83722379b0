// Text of each attribute *type*, as HLO writes it. The parser's inverse lives in text/attr_parse.h.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "strop/ir/attrs.h"

namespace strop {

std::string AttrText(int64_t v);
std::string AttrText(bool v);
std::string AttrText(float v);
std::string AttrText(const std::string& v);  // in quotes, C-escaped
std::string AttrText(const ChannelId& v);
std::string AttrText(const Keyword& v);  // as it is
std::string AttrText(const Dims& v);     // {0,1}
std::string AttrText(const std::vector<Dims>& v);
std::string AttrText(const std::vector<bool>& v);
std::string AttrText(const Window& v);
std::string AttrText(const ConvDimLabels& v);
std::string AttrText(const PaddingConfig& v);
std::string AttrText(const SliceDims& v);
std::string AttrText(const PrecisionConfig& v);
std::string AttrText(const OutputOperandAliasing& v);
std::string AttrText(const SourceTargetPairs& v);
std::string AttrText(const ReplicaGroups& v);
std::string AttrText(const ResultAccuracy& v);
std::string AttrText(const Verbatim& v);
std::string AttrText(const Shape& v);
std::string AttrText(Precision v);
std::string AttrText(CompareDirection v);
std::string AttrText(CompareOrder v);
std::string AttrText(FftType v);
std::string AttrText(FusionKind v);
std::string AttrText(RngDistribution v);
std::string AttrText(RngAlgorithm v);
std::string AttrText(TransposeA v);
std::string AttrText(CustomCallSchedule v);
std::string AttrText(ApiVersion v);
std::string AttrText(PaddingType v);
std::string AttrText(const std::vector<Window>& v);
std::string AttrText(const std::vector<ConvDimLabels>& v);
std::string AttrText(const std::vector<Literal>& v);

// "{k=\"v\",...}": a value that reads as a JSON object is written without quotes.
std::string FrontendAttributesText(const std::map<std::string, std::string>& attributes);
// True if `text` is one balanced {...} (strings skipped): such text needs no quotes in backend_config.
bool ReadsAsJsonObject(std::string_view text);

}  // namespace strop
