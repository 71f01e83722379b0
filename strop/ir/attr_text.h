// Text of each attribute *type*, as HLO writes it. The parser's inverse lives in text/attr_parse.h.
#pragma once
#include <string>

#include "strop/ir/attrs.h"

namespace strop {

std::string AttrText(int64_t v);
std::string AttrText(bool v);
std::string AttrText(float v);
std::string AttrText(const std::string& v);  // quoted where HLO quotes it: see NeedsQuotes in attr_text.cc
std::string AttrText(const Dims& v);         // {0,1}
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

}  // namespace strop
