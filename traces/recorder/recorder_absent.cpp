#include "sim/core/error.hpp"
#include "traces/recorder/recorder.hpp"

namespace tandem {

bool recorder_available() {
  return false;
}

Trace record(const RecordOptions&) {
  throw usage_error("this build has no recorder: install oneDNN and configure with -DTANDEM_RECORDER=ON");
}

}  // namespace tandem
