// What collectives take on a named arrangement of devices, after an alpha-beta model: a message costs the link's
// seconds, and its bytes at the link's rate.
//
// A topology is a list of dimensions; device d of the program sits where its number says, the last dimension fastest:
//   ring:8, torus:16x16   every device has two neighbours a dimension
//   mesh:16x16            the same without the links that close the rings
//   switch:64             any device reaches any other
//   hosts:512x8           a switch inside each host, and one between hosts, to which a host has one link
//
// A collective goes dimension by dimension, the slowest with the smallest pieces, as libraries for such machines do;
// groups that are no box of devices go around one ring over the slowest links that they use.
#pragma once
#include <string>
#include <vector>

#include "strop/analysis/collective_traffic.h"
#include "strop/base/status.h"

namespace strop::tools {

// What a message between two devices costs: seconds + bytes / bytes_per_second.
struct LinkModel {
  double seconds = 1e-6, bytes_per_second = 50e9;
};
// The same between hosts: a network card that the devices of the host share.
constexpr LinkModel kNetwork = {10e-6, 25e9};

enum class Wiring : uint8_t { kRing, kLine, kSwitch };

struct TopologyDimension {
  std::string name;
  int64_t size = 1;
  Wiring wiring = Wiring::kSwitch;
  LinkModel link;
  int64_t sharers = 1;  // devices that share a link
};

struct Topology {
  std::string name;  // as given; empty: none
  std::vector<TopologyDimension> dimensions;
  int64_t devices() const;
};

// "torus:16x16"; `network` is for the links between hosts.
Result<Topology> ParseTopology(const std::string& text, const LinkModel& link, const LinkModel& network);

// What one collective asks of the links of one dimension.
struct LinkUse {
  size_t dimension = 0;
  int64_t members = 1;  // places along the dimension that take part
  double bytes = 0;     // over the busiest link, one way
  double seconds = 0;
};

// In the order of the dimensions, those that are not used left out. Of a collective's groups the slowest.
Result<std::vector<LinkUse>> LinksOf(const CollectiveTraffic& collective, const ModuleConfig& config,
                                     const Topology& topology);

}  // namespace strop::tools
