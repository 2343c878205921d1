// What `caffe time` says about a network, from its log or from a table of the log's figures. Not a trace yet.
//
// The log: glog's prefix ("I0228 16:31:09.123456  1234 caffe.cpp:404] ") in front of messages; those that count are
//
//   Initializing net from parameters:            then, without prefix, the network as protobuf text
//   Creating Layer conv1 / conv1 <- data / conv1 -> conv1 / Top shape: 64 20 24 24 (737280)
//        conv1<tab>forward: 0.242765 ms.         mean over the iterations; the same for backward
//   Average Forward pass: 1.27361 ms.            the tool's own total; the same for Backward and Forward-Backward
//
// Any of them but the times may be missing: people keep the end of a log.
// The table: layer[,type],output_shape_NCHW,fwd_ms,bwd_ms[,param_count] and rows "#AVERAGE Forward pass,,42.405,".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tandem {

struct CaffeLayer {
  std::string name;
  int line = 0;      // where its forward time stands
  std::string type;  // "Convolution"; empty where the file does not say
  struct Blob {
    std::string name;
    std::optional<Shape> shape;
  };
  std::vector<std::string> bottoms;
  std::vector<Blob> tops;
  std::map<std::string, std::vector<std::string>> parameters;  // of its *_param message: "kernel_size" -> {"5"}
  bool has_parameters = false;  // the network's text was in the file, so what is not among them has its default
  std::optional<double> forward_ms, backward_ms;
  std::optional<std::int64_t> parameter_count;
};

struct CaffeProfile {
  std::string model, device;
  bool has_graph = false;  // bottoms and tops are known
  bool force_backward = false;
  std::vector<CaffeLayer> layers;  // those that were timed, in their order; all have a forward time
  std::optional<double> forward_ms, backward_ms, both_ms;
  std::int64_t iterations = 0;  // lines about single iterations
  std::int64_t other_lines = 0;
};

[[nodiscard]] bool is_caffe_log(std::string_view head);
[[nodiscard]] bool is_caffe_table(std::string_view head);

// Input errors name the line.
[[nodiscard]] CaffeProfile read_caffe_log(std::string_view content);
[[nodiscard]] CaffeProfile read_caffe_table(std::string_view content);

}  // namespace tandem
