// A file that is there whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// Writes a temporary file beside `path`, brings it to the disk and renames it. An earlier file of this name stays
// as it is until then. Input error where that fails; nothing is left behind.
void write_atomically(const std::string& path, std::string_view bytes);

}  // namespace tandem
