// The clock and the network under the executor: dates at which something happens, and flows that share links.
// Behind it stands SimGrid (simgrid_backend.cpp); the executor and its tests see only this.
#pragma once

#include <cstdint>
#include <vector>

#include "platforms/network.hpp"
#include "sim/core/units.hpp"

namespace tandem {

using Token = std::uint64_t;

class Backend {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_timer(Token token) = 0;
    virtual void on_flow_done(Token token) = 0;
  };

  virtual ~Backend() = default;
  [[nodiscard]] virtual Seconds now() const = 0;
  // Calls listener.on_timer(token) at `date` (not before now). A timer cannot be taken back: whoever set it ignores
  // the token when it has become stale.
  virtual void at(Seconds date, Listener& listener, Token token) = 0;
  // Moves bytes along `path`, sharing each link fairly with all flows on it; then listener.on_flow_done(token).
  // Returns a handle for cancel_flow. bytes > 0 and a path that is not empty.
  virtual std::int32_t start_flow(DeviceId from, DeviceId to, const std::vector<LinkId>& path, Bytes bytes,
                                  Listener& listener, Token token) = 0;
  virtual void cancel_flow(std::int32_t flow) = 0;
  virtual void set_bandwidth(LinkId link, BytesPerSecond bandwidth) = 0;
};

}  // namespace tandem
