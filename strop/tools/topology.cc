#include "strop/tools/topology.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "strop/plan/collective.h"

namespace strop::tools {
namespace {

constexpr int64_t kMostDevices = 65536;
constexpr const char* kAxes[] = {"x", "y", "z", "w", "v", "u"};

// How a group lies along one dimension.
struct Spread {
  int64_t members = 1;
  int64_t stride = 1;   // places from one member to the next
  bool closed = false;  // they go around a whole ring
};

std::vector<int64_t> PlaceOf(int64_t device, const Topology& topology) {
  std::vector<int64_t> place(topology.dimensions.size());
  for (size_t d = place.size(); d-- > 0; device /= topology.dimensions[d].size)
    place[d] = device % topology.dimensions[d].size;
  return place;
}

Spread SpreadOf(std::vector<int64_t> places, const TopologyDimension& dimension) {
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  Spread out{.members = static_cast<int64_t>(places.size())};
  if (out.members == 1) return out;
  const int64_t span = places.back() - places.front();
  out.stride = (span + out.members - 2) / (out.members - 1);
  out.closed = dimension.wiring == Wiring::kRing && out.members * out.stride == dimension.size;
  return out;
}

std::vector<Spread> SpreadsOf(const std::vector<int32_t>& group, const Topology& topology) {
  std::vector<std::vector<int64_t>> places(topology.dimensions.size());
  for (const int32_t device : group) {
    const std::vector<int64_t> place = PlaceOf(device, topology);
    for (size_t d = 0; d < place.size(); ++d) places[d].push_back(place[d]);
  }
  std::vector<Spread> out;
  for (size_t d = 0; d < places.size(); ++d) out.push_back(SpreadOf(std::move(places[d]), topology.dimensions[d]));
  return out;
}

double Seconds(const TopologyDimension& dimension, int64_t messages, double bytes) {
  return static_cast<double>(messages) * dimension.link.seconds + bytes / dimension.link.bytes_per_second;
}

// Every member sends `sent` bytes around, or, at a switch, to ever further ones, twice as many each time.
LinkUse Around(size_t d, const TopologyDimension& dimension, const Spread& spread, double sent) {
  LinkUse use{.dimension = d, .members = spread.members};
  int64_t messages = 0;
  if (dimension.wiring == Wiring::kSwitch) {
    use.bytes = sent * static_cast<double>(dimension.sharers);
    messages = std::bit_width(static_cast<uint64_t>(spread.members - 1));
  } else {
    // As many groups as the stride lie between each other and share links. On a line every other member comes on the
    // way there, and the rest on the way back.
    use.bytes = sent * static_cast<double>(spread.stride);
    const int64_t hops = spread.closed || spread.members == 2 ? spread.stride : 2 * spread.stride;
    messages = (spread.members - 1) * hops;
  }
  use.seconds = Seconds(dimension, messages, use.bytes);
  return use;
}

// Every member has an equal part of `held` bytes for each.
LinkUse Exchange(size_t d, const TopologyDimension& dimension, const Spread& spread, double held) {
  LinkUse use{.dimension = d, .members = spread.members};
  const int64_t n = spread.members;
  const double part = held / static_cast<double>(n);
  if (dimension.wiring == Wiring::kSwitch) {
    use.bytes = part * static_cast<double>((n - 1) * dimension.sharers);
  } else {
    // Over the middle of a line goes what one half has for the other; a ring has half of that each way, twice.
    const auto across = static_cast<double>((n / 2) * (n - n / 2) * spread.stride);
    use.bytes = part * (spread.closed ? across / 2 : across);
  }
  use.seconds = Seconds(dimension, (n - 1) * (dimension.wiring == Wiring::kSwitch ? 1 : spread.stride), use.bytes);
  return use;
}

// The slowest first.
std::vector<size_t> BySpeed(const Topology& topology) {
  std::vector<size_t> order(topology.dimensions.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = d;
  const auto rate = [&](size_t d) {
    const TopologyDimension& dimension = topology.dimensions[d];
    return dimension.link.bytes_per_second / static_cast<double>(dimension.sharers);
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rate(a) < rate(b); });
  return order;
}

std::vector<LinkUse> LinksOfGroup(const CollectiveTraffic& collective, const std::vector<int32_t>& group,
                                  const Topology& topology) {
  const std::vector<Spread> spreads = SpreadsOf(group, topology);
  const std::vector<size_t> order = BySpeed(topology);
  const Op op = collective.at->op();
  const bool gathers = op == Op::AllGather || op == Op::AllGatherStart;
  const double times = op == Op::AllReduce || op == Op::AllReduceStart ? 2 : 1;  // scatters the sums, gathers them
  double piece = collective.operand_bytes / (gathers ? 1 : static_cast<double>(group.size()));
  int64_t box = 1;
  for (const Spread& spread : spreads) box *= spread.members;
  std::vector<LinkUse> out;
  for (const size_t d : order) {
    const TopologyDimension& dimension = topology.dimensions[d];
    Spread spread = spreads[d];
    if (spread.members == 1) continue;
    if (op == Op::AllToAll || op == Op::RaggedAllToAll) {
      out.push_back(Exchange(d, dimension, spread, collective.operand_bytes));
      continue;
    }
    const bool is_box = box == static_cast<int64_t>(group.size());
    const int64_t members = is_box ? spread.members : static_cast<int64_t>(group.size());
    out.push_back(Around(d, dimension, spread, piece * static_cast<double>(members - 1)));
    out.back().bytes *= times;
    out.back().seconds *= times;
    if (!is_box) break;
    piece *= static_cast<double>(members);
  }
  std::sort(out.begin(), out.end(), [](const LinkUse& a, const LinkUse& b) { return a.dimension < b.dimension; });
  return out;
}

// Messages go along one dimension after the other, the shorter way around, and are taken to be spread evenly over rings
// and lines.
std::vector<LinkUse> LinksOfPairs(const CollectiveTraffic& collective,
                                  const std::vector<std::pair<int32_t, int32_t>>& pairs, const Topology& topology) {
  std::vector<LinkUse> out;
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    const TopologyDimension& dimension = topology.dimensions[d];
    std::vector<int64_t> leaving(static_cast<size_t>(topology.devices() / dimension.sharers));
    int64_t hops[2] = {0, 0}, furthest = 0;  // there, back
    for (const auto& [source, target] : pairs) {
      int64_t far = PlaceOf(target, topology)[d] - PlaceOf(source, topology)[d];
      if (far == 0) continue;
      if (dimension.wiring == Wiring::kSwitch) {
        ++leaving[static_cast<size_t>(source / dimension.sharers)];
        far = 1;
      } else if (dimension.wiring == Wiring::kRing && std::abs(far) * 2 > dimension.size) {
        far += far > 0 ? -dimension.size : dimension.size;
      }
      hops[far < 0] += std::abs(far);
      furthest = std::max(furthest, std::abs(far));
    }
    if (furthest == 0) continue;
    const double busiest =
        dimension.wiring == Wiring::kSwitch
            ? static_cast<double>(*std::max_element(leaving.begin(), leaving.end()))
            : std::max(1.0, static_cast<double>(std::max(hops[0], hops[1])) / static_cast<double>(topology.devices()));
    LinkUse use{.dimension = d, .members = 2, .bytes = busiest * collective.operand_bytes};
    use.seconds = Seconds(dimension, furthest, use.bytes);
    out.push_back(use);
  }
  return out;
}

double Together(const std::vector<LinkUse>& uses) {
  double seconds = 0;
  for (const LinkUse& use : uses) seconds += use.seconds;
  return seconds;
}

}  // namespace

int64_t Topology::devices() const {
  int64_t all = 1;
  for (const TopologyDimension& dimension : dimensions) all *= dimension.size;
  return all;
}

Result<Topology> ParseTopology(const std::string& text, const LinkModel& link, const LinkModel& network) {
  const auto refuse = [&] {
    return InvalidArgument("--topology=", text,
                           " is not accepted: expected ring:N, switch:N, torus:NxM or mesh:NxM (up to ",
                           std::size(kAxes), " sizes), or hosts:NxDEVICES, of 2 to ", kMostDevices, " devices");
  };
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return refuse();
  const std::string kind = text.substr(0, colon);
  std::vector<int64_t> sizes;
  int64_t devices = 1;
  for (const std::string_view size : Split(std::string_view(text).substr(colon + 1), 'x')) {
    sizes.push_back(ParseNumber<int64_t>(size).value_or(0));
    if (sizes.back() < 1 || sizes.back() > kMostDevices / devices) return refuse();
    devices *= sizes.back();
  }
  Topology out{.name = text};
  if ((kind == "ring" || kind == "switch") && sizes.size() == 1) {
    out.dimensions = {{kind, sizes[0], kind == "ring" ? Wiring::kRing : Wiring::kSwitch, link}};
  } else if ((kind == "torus" || kind == "mesh") && sizes.size() <= std::size(kAxes)) {
    for (size_t d = 0; d < sizes.size(); ++d)
      out.dimensions.push_back({kAxes[d], sizes[d], kind == "torus" ? Wiring::kRing : Wiring::kLine, link});
  } else if (kind == "hosts" && sizes.size() == 2) {
    out.dimensions = {{"hosts", sizes[0], Wiring::kSwitch, network, sizes[1]},
                      {"devices", sizes[1], Wiring::kSwitch, link}};
  } else {
    return refuse();
  }
  if (devices < 2) return refuse();
  return out;
}

Result<std::vector<LinkUse>> LinksOf(const CollectiveTraffic& collective, const ModuleConfig& config,
                                     const Topology& topology) {
  STROP_ASSIGN(const Meeting meeting, MeetingOf(*collective.at, config));
  if (meeting.groups.empty()) return LinksOfPairs(collective, meeting.source_target, topology);
  std::vector<LinkUse> slowest;
  for (const std::vector<int32_t>& group : meeting.groups) {
    std::vector<LinkUse> uses = LinksOfGroup(collective, group, topology);
    if (slowest.empty() || Together(uses) > Together(slowest)) slowest = std::move(uses);
  }
  return slowest;
}

}  // namespace strop::tools
