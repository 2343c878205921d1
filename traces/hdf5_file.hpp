// The one thin wrapper around the HDF5 C API: traces and results are read and written through it and nothing else.
//
// Files are flat: groups, attributes (text, whole numbers, real numbers) and one-dimensional datasets, each with a
// `unit` attribute where it has one. Equal content gives equal bytes: object times are off, and text is stored with
// a fixed width (UTF-8, padded with NUL), because variable-length text lives in heaps whose layout is HDF5's own
// affair. Every failure is an Error of kind input, one line: the path, the object and HDF5's or the system's reason.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// `extendible` datasets are chunked and have no upper limit on their length, so that other tools may append to them.
// `plain` ones from 4 KiB up are deflated.
enum class Hdf5Layout { plain, extendible };

// Well-formed UTF-8 without NUL (RFC 3629): what every reader can decode. Other text is refused.
[[nodiscard]] bool is_storable_text(std::string_view text);

// Collects a file in memory. commit() writes it to a temporary file in the same folder, syncs it and renames it, so
// that `path` is either the whole file or untouched. Without a commit nothing reaches the disk.
//
// The image is built in memory on purpose: where the disk fills up under HDF5's own file driver, the file can be
// neither flushed nor closed, and the library complains again at exit. A plain write() has one errno.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(std::string path);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  // Objects are named by their path from the root ("/layers/name"); missing groups on the way are made.
  void group(const std::string& name);
  // `object` is a group or a dataset; "/" is the root. Text is at most 60 KB (a limit of HDF5's attributes).
  void attribute(const std::string& object, const std::string& name, std::string_view value);
  void attribute(const std::string& object, const std::string& name, std::int64_t value);
  void attribute(const std::string& object, const std::string& name, double value);
  // An empty `unit` writes no unit attribute.
  void dataset(const std::string& name, std::span<const double> values, std::string_view unit = "",
               Hdf5Layout layout = Hdf5Layout::plain);
  void dataset(const std::string& name, std::span<const std::int64_t> values, std::string_view unit = "",
               Hdf5Layout layout = Hdf5Layout::plain);
  void dataset(const std::string& name, std::span<const std::int32_t> values, std::string_view unit = "",
               Hdf5Layout layout = Hdf5Layout::plain);
  // Text without NUL characters, as wide as the longest.
  void dataset(const std::string& name, std::span<const std::string> values, std::string_view unit = "",
               Hdf5Layout layout = Hdf5Layout::plain);
  // The file appears under its name. To be called once, last.
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether the file is there and starts as HDF5 files do.
[[nodiscard]] bool is_hdf5_file(const std::string& path);

// Reads what the writer wrote, and what h5py writes of the same kind (variable-length text, any integer width).
// Types are checked: real numbers are not read as whole ones or the other way round. A dataset that claims more
// elements than its file can hold is refused before memory is taken for it.
class Hdf5Reader {
 public:
  explicit Hdf5Reader(std::string path);
  ~Hdf5Reader();
  Hdf5Reader(const Hdf5Reader&) = delete;
  Hdf5Reader& operator=(const Hdf5Reader&) = delete;

  [[nodiscard]] bool has(const std::string& name) const;  // a group or dataset of this path
  [[nodiscard]] bool has_attribute(const std::string& object, const std::string& name) const;
  [[nodiscard]] std::vector<std::string> members(const std::string& group) const;  // sorted by name
  [[nodiscard]] std::string text_attribute(const std::string& object, const std::string& name) const;
  [[nodiscard]] std::int64_t integer_attribute(const std::string& object, const std::string& name) const;
  [[nodiscard]] double number_attribute(const std::string& object, const std::string& name) const;
  [[nodiscard]] std::vector<double> numbers(const std::string& name) const;
  [[nodiscard]] std::vector<std::int64_t> integers(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> strings(const std::string& name) const;
  [[nodiscard]] std::string unit(const std::string& name) const;  // "" where it has none

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
