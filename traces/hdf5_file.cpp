#include "traces/hdf5_file.hpp"

#include <fmt/format.h>
#include <hdf5.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "sim/core/error.hpp"
#include "traces/atomic_file.hpp"

namespace tandem {
namespace {

// An HDF5 identifier and the function that gives it back.
class Handle {
 public:
  using Closer = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Closer closer) : id_(id), closer_(closer) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) closer_(id_);
  }
  [[nodiscard]] hid_t id() const { return id_; }
  [[nodiscard]] bool valid() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  Closer closer_ = nullptr;
};

void silence_hdf5() {
  static const bool done = [] { return H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0; }();
  (void)done;
}

// The innermost entry of HDF5's error stack: the outer ones only say who called whom.
std::string hdf5_reason() {
  std::string reason;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned n, const H5E_error2_t* entry, void* text) -> herr_t {
        if (n == 0 && entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
        return 0;
      },
      &reason);
  H5Eclear2(H5E_DEFAULT);
  if (reason.empty()) reason = "HDF5 gives no reason";
  for (char& c : reason) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return reason;
}

[[noreturn]] void fail_hdf5(const std::string& path, const std::string& what) {
  throw input_error(fmt::format("{}: {}: {}", path, what, hdf5_reason()));
}

[[noreturn]] void fail_system(const std::string& path, const std::string& what, int error) {
  throw input_error(fmt::format("{}: {}: {}", path, what, std::strerror(error)));
}

Handle string_type(std::size_t width) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), std::max<std::size_t>(width, 1));
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
  return type;
}

// ---- writing ----

// Layers of equal shapes share their split curves, and offsets are nearly all alike: a large trace halves.
constexpr std::size_t kLeastDeflated = 4096;  // bytes of a dataset; chunks have their own overhead
constexpr hsize_t kDeflatedChunk = 65536;     // elements
constexpr unsigned kDeflateLevel = 6;

// ---- reading ----

// A file can hold no more than deflate's best ratio times its size, give or take fill values never written.
constexpr double kMostExpansion = 1032;
constexpr double kSmallClaim = 16 << 20;

struct StatResult {
  std::int64_t size = 0;
};

StatResult check_readable(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) fail_system(path, "cannot read", errno);
  if (S_ISDIR(info.st_mode)) fail_system(path, "cannot read", EISDIR);
  if (!S_ISREG(info.st_mode)) throw input_error(fmt::format("{}: cannot read: not a regular file", path));
  if (::access(path.c_str(), R_OK) != 0) fail_system(path, "cannot read", errno);
  if (info.st_size == 0) throw input_error(fmt::format("{}: not an HDF5 file: it is empty", path));
  return {info.st_size};
}

std::string trimmed(const char* text, std::size_t width) {
  return {text, ::strnlen(text, width)};
}

const char* class_name(H5T_class_t type) {
  switch (type) {
    case H5T_INTEGER:
      return "whole numbers";
    case H5T_FLOAT:
      return "real numbers";
    case H5T_STRING:
      return "text";
    default:
      return "another type";
  }
}

}  // namespace

bool is_storable_text(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead == 0) return false;
    const std::size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    if (length == 0 || i + length > text.size()) return false;
    std::uint32_t point = length == 1 ? lead : lead & (0x7fU >> length);
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if (next >> 6 != 2) return false;
      point = point << 6 | (next & 0x3fU);
    }
    constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
    i += length;
  }
  return true;
}

// ---- writer ----

struct Hdf5Writer::State {
  std::string path;
  Handle file;
  Handle group_properties;

  [[noreturn]] void fail(const std::string& object) const { fail_hdf5(path, fmt::format("'{}'", object)); }

  [[nodiscard]] Handle open(const std::string& object) const {
    Handle handle(H5Oopen(file.id(), object.c_str(), H5P_DEFAULT), H5Oclose);
    if (!handle.valid()) fail(object);
    return handle;
  }

  // Parent by parent: groups that HDF5 makes by itself on the way have no creation property of ours.
  void group(const std::string& name) const {
    for (std::size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
      const std::string part = name.substr(0, end);
      if (H5Lexists(file.id(), part.c_str(), H5P_DEFAULT) <= 0) {
        const Handle made(H5Gcreate2(file.id(), part.c_str(), H5P_DEFAULT, group_properties.id(), H5P_DEFAULT),
                          H5Gclose);
        if (!made.valid()) fail(part);
      }
      if (end == std::string::npos) return;
    }
  }

  void attribute(hid_t object, const std::string& what, const std::string& name, hid_t type, const void* value) const {
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle handle(H5Acreate2(object, name.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    if (!handle.valid() || H5Awrite(handle.id(), type, value) < 0) fail(what + "@" + name);
  }

  void text_attribute(hid_t object, const std::string& what, const std::string& name, std::string_view value) const {
    if (!is_storable_text(value)) {
      throw input_error(fmt::format("{}: '{}@{}': the text is not UTF-8, or has a NUL in it", path, what, name));
    }
    std::string padded(value);
    if (padded.empty()) padded.push_back('\0');
    attribute(object, what, name, string_type(padded.size()).id(), padded.data());
  }

  void dataset(const std::string& name, hid_t type, std::size_t count, const void* values, std::string_view unit,
               Hdf5Layout layout) const {
    const hsize_t size = count;
    const hsize_t most = layout == Hdf5Layout::extendible ? H5S_UNLIMITED : size;
    const Handle space(H5Screate_simple(1, &size, &most), H5Sclose);
    const Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_obj_track_times(properties.id(), false);
    if (layout == Hdf5Layout::extendible) {
      const hsize_t chunk = std::clamp<hsize_t>(size, 16, 4096);
      H5Pset_chunk(properties.id(), 1, &chunk);
    } else if (count * H5Tget_size(type) >= kLeastDeflated) {
      const hsize_t chunk = std::min<hsize_t>(size, kDeflatedChunk);
      H5Pset_chunk(properties.id(), 1, &chunk);
      H5Pset_deflate(properties.id(), kDeflateLevel);
    }
    if (const auto slash = name.rfind('/'); slash != std::string::npos && slash > 0) group(name.substr(0, slash));
    const Handle handle(
        H5Dcreate2(file.id(), name.c_str(), type, space.id(), H5P_DEFAULT, properties.id(), H5P_DEFAULT), H5Dclose);
    if (!handle.valid()) fail(name);
    if (count > 0 && H5Dwrite(handle.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) fail(name);
    if (!unit.empty()) text_attribute(handle.id(), name, "unit", unit);
  }
};

Hdf5Writer::Hdf5Writer(std::string path) : state_(std::make_unique<State>()) {
  silence_hdf5();
  state_->path = std::move(path);
  state_->group_properties = Handle(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_obj_track_times(state_->group_properties.id(), false);
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation.id(), false);
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fclose_degree(access.id(), H5F_CLOSE_STRONG);
  H5Pset_fapl_core(access.id(), 1 << 20, false);
  // In memory only: the name is never opened, but HDF5 tells open files apart by it.
  static std::atomic<unsigned> counter{0};
  const std::string label = fmt::format("{}#{}", state_->path, counter++);
  state_->file = Handle(H5Fcreate(label.c_str(), H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose);
  if (!state_->file.valid()) fail_hdf5(state_->path, "cannot create");
}

Hdf5Writer::~Hdf5Writer() = default;

void Hdf5Writer::group(const std::string& name) {
  state_->group(name);
}

void Hdf5Writer::attribute(const std::string& object, const std::string& name, std::string_view value) {
  state_->text_attribute(state_->open(object).id(), object, name, value);
}

void Hdf5Writer::attribute(const std::string& object, const std::string& name, std::int64_t value) {
  state_->attribute(state_->open(object).id(), object, name, H5T_STD_I64LE, &value);
}

void Hdf5Writer::attribute(const std::string& object, const std::string& name, double value) {
  state_->attribute(state_->open(object).id(), object, name, H5T_IEEE_F64LE, &value);
}

void Hdf5Writer::dataset(const std::string& name, std::span<const double> values, std::string_view unit,
                         Hdf5Layout layout) {
  state_->dataset(name, H5T_IEEE_F64LE, values.size(), values.data(), unit, layout);
}

void Hdf5Writer::dataset(const std::string& name, std::span<const std::int64_t> values, std::string_view unit,
                         Hdf5Layout layout) {
  state_->dataset(name, H5T_STD_I64LE, values.size(), values.data(), unit, layout);
}

void Hdf5Writer::dataset(const std::string& name, std::span<const std::int32_t> values, std::string_view unit,
                         Hdf5Layout layout) {
  state_->dataset(name, H5T_STD_I32LE, values.size(), values.data(), unit, layout);
}

void Hdf5Writer::dataset(const std::string& name, std::span<const std::string> values, std::string_view unit,
                         Hdf5Layout layout) {
  std::size_t width = 1;
  for (const auto& value : values) {
    if (!is_storable_text(value)) {
      throw input_error(fmt::format("{}: '{}': a text is not UTF-8, or has a NUL in it", state_->path, name));
    }
    width = std::max(width, value.size());
  }
  std::string flat(width * values.size(), '\0');
  for (std::size_t i = 0; i < values.size(); ++i) values[i].copy(flat.data() + i * width, width);
  state_->dataset(name, string_type(width).id(), values.size(), flat.data(), unit, layout);
}

void Hdf5Writer::commit() {
  if (H5Fflush(state_->file.id(), H5F_SCOPE_GLOBAL) < 0) fail_hdf5(state_->path, "cannot write");
  const ssize_t size = H5Fget_file_image(state_->file.id(), nullptr, 0);
  if (size < 0) fail_hdf5(state_->path, "cannot write");
  std::vector<char> image(static_cast<std::size_t>(size));
  if (H5Fget_file_image(state_->file.id(), image.data(), image.size()) != size) fail_hdf5(state_->path, "cannot write");
  state_->file = Handle();
  write_atomically(state_->path, {image.data(), image.size()});
}

// ---- reader ----

struct Hdf5Reader::State {
  std::string path;
  std::int64_t file_size = 0;
  Handle file;

  [[noreturn]] void fail(const std::string& object, const std::string& why) const {
    throw input_error(fmt::format("{}: '{}': {}", path, object, why));
  }

  // H5Lexists wants every group on the way to exist.
  [[nodiscard]] bool has(const std::string& name) const {
    if (name == "/") return true;
    for (std::size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
      const std::string part = name.substr(0, end);
      if (H5Lexists(file.id(), part.c_str(), H5P_DEFAULT) <= 0) return false;
      if (end == std::string::npos) return H5Oexists_by_name(file.id(), name.c_str(), H5P_DEFAULT) > 0;
    }
  }

  [[nodiscard]] Handle open(const std::string& object) const {
    if (!has(object)) fail(object, "not in this file");
    Handle handle(H5Oopen(file.id(), object.c_str(), H5P_DEFAULT), H5Oclose);
    if (!handle.valid()) fail(object, hdf5_reason());
    return handle;
  }

  [[nodiscard]] Handle open_attribute(const Handle& object, const std::string& what, const std::string& name) const {
    if (H5Aexists(object.id(), name.c_str()) <= 0) fail(what, fmt::format("attribute '{}' is missing", name));
    Handle handle(H5Aopen(object.id(), name.c_str(), H5P_DEFAULT), H5Aclose);
    if (!handle.valid()) fail(what + "@" + name, hdf5_reason());
    return handle;
  }

  void check_class(const std::string& what, const Handle& type, H5T_class_t wanted) const {
    const auto seen = type.valid() ? H5Tget_class(type.id()) : H5T_NO_CLASS;
    if (seen != wanted) fail(what, fmt::format("holds {}; {} are expected", class_name(seen), class_name(wanted)));
  }

  void check_claim(const std::string& what, double elements, std::size_t width) const {
    const double most = std::max(kSmallClaim, kMostExpansion * static_cast<double>(file_size));
    if (elements * static_cast<double>(width) > most) {
      fail(what, fmt::format("claims {:.0f} elements of {} bytes, which a file of {} bytes cannot hold", elements,
                             width, file_size));
    }
  }

  // The value of a scalar attribute, or of one of one element (h5py writes both).
  template <class Read>
  void read_scalar(const std::string& object, const std::string& name, H5T_class_t wanted, Read&& read) const {
    const std::string what = object + "@" + name;
    const Handle owner = open(object);
    const Handle attribute = open_attribute(owner, object, name);
    const Handle type(H5Aget_type(attribute.id()), H5Tclose);
    check_class(what, type, wanted);
    const Handle space(H5Aget_space(attribute.id()), H5Sclose);
    if (H5Sget_simple_extent_npoints(space.id()) != 1) fail(what, "is not one value");
    read(what, attribute, type);
  }

  struct Column {
    Handle dataset, type;
    std::size_t count = 0;
  };

  [[nodiscard]] Column open_column(const std::string& name, H5T_class_t wanted) const {
    const Handle object = open(name);
    if (H5Iget_type(object.id()) != H5I_DATASET) fail(name, "is not a dataset");
    Column column;
    column.dataset = Handle(H5Dopen2(file.id(), name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!column.dataset.valid()) fail(name, hdf5_reason());
    column.type = Handle(H5Dget_type(column.dataset.id()), H5Tclose);
    check_class(name, column.type, wanted);
    const Handle space(H5Dget_space(column.dataset.id()), H5Sclose);
    hsize_t size = 0;
    if (H5Sget_simple_extent_ndims(space.id()) != 1 || H5Sget_simple_extent_dims(space.id(), &size, nullptr) < 0) {
      fail(name, "is not one-dimensional");
    }
    check_claim(name, static_cast<double>(size), std::max<std::size_t>(H5Tget_size(column.type.id()), 8));
    column.count = static_cast<std::size_t>(size);
    return column;
  }

  void read_column(const std::string& name, const Column& column, hid_t type, void* values) const {
    if (column.count == 0) return;
    if (H5Dread(column.dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) fail(name, hdf5_reason());
  }

  [[nodiscard]] std::vector<std::string> fixed_strings(const std::string& name, const Column& column) const {
    const std::size_t width = H5Tget_size(column.type.id());
    std::vector<char> flat(width * column.count);
    read_column(name, column, column.type.id(), flat.data());
    std::vector<std::string> values;
    for (std::size_t i = 0; i < column.count; ++i) values.push_back(trimmed(flat.data() + i * width, width));
    return values;
  }

  [[nodiscard]] std::vector<std::string> variable_strings(const std::string& name, const Column& column) const {
    std::vector<char*> pointers(column.count, nullptr);
    read_column(name, column, column.type.id(), static_cast<void*>(pointers.data()));
    std::vector<std::string> values;
    for (char* text : pointers) values.emplace_back(text == nullptr ? "" : text);
    const Handle space(H5Dget_space(column.dataset.id()), H5Sclose);
    H5Dvlen_reclaim(column.type.id(), space.id(), H5P_DEFAULT, static_cast<void*>(pointers.data()));
    return values;
  }
};

bool is_hdf5_file(const std::string& path) {
  silence_hdf5();
  const bool recognized = H5Fis_hdf5(path.c_str()) > 0;
  H5Eclear2(H5E_DEFAULT);
  return recognized;
}

Hdf5Reader::Hdf5Reader(std::string path) : state_(std::make_unique<State>()) {
  silence_hdf5();
  state_->path = std::move(path);
  state_->file_size = check_readable(state_->path).size;
  if (!is_hdf5_file(state_->path)) throw input_error(fmt::format("{}: not an HDF5 file", state_->path));
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fclose_degree(access.id(), H5F_CLOSE_STRONG);
  // Readers do not lock: many processes of a sweep read the same trace, also from file systems without locks.
  H5Pset_file_locking(access.id(), false, true);
  state_->file = Handle(H5Fopen(state_->path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
  if (!state_->file.valid()) fail_hdf5(state_->path, "damaged HDF5 file");
}

Hdf5Reader::~Hdf5Reader() = default;

bool Hdf5Reader::has(const std::string& name) const {
  const bool found = state_->has(name);
  H5Eclear2(H5E_DEFAULT);
  return found;
}

bool Hdf5Reader::has_attribute(const std::string& object, const std::string& name) const {
  return H5Aexists(state_->open(object).id(), name.c_str()) > 0;
}

std::vector<std::string> Hdf5Reader::members(const std::string& group) const {
  const Handle handle = state_->open(group);
  if (H5Iget_type(handle.id()) != H5I_GROUP) state_->fail(group, "is not a group");
  std::vector<std::string> names;
  const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* into) -> herr_t {
    static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    return 0;
  };
  if (H5Literate(handle.id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names) < 0) {
    state_->fail(group, hdf5_reason());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Hdf5Reader::text_attribute(const std::string& object, const std::string& name) const {
  std::string value;
  state_->read_scalar(object, name, H5T_STRING,
                      [&](const std::string& what, const Handle& attribute, const Handle& type) {
                        if (H5Tis_variable_str(type.id()) > 0) {
                          char* text = nullptr;
                          if (H5Aread(attribute.id(), type.id(), static_cast<void*>(&text)) < 0)
                            state_->fail(what, hdf5_reason());
                          value = text == nullptr ? "" : text;
                          H5free_memory(text);
                          return;
                        }
                        const std::size_t width = H5Tget_size(type.id());
                        state_->check_claim(what, 1, width);
                        std::vector<char> text(width);
                        if (H5Aread(attribute.id(), type.id(), text.data()) < 0) state_->fail(what, hdf5_reason());
                        value = trimmed(text.data(), width);
                      });
  return value;
}

std::int64_t Hdf5Reader::integer_attribute(const std::string& object, const std::string& name) const {
  std::int64_t value = 0;
  state_->read_scalar(object, name, H5T_INTEGER, [&](const std::string& what, const Handle& attribute, const Handle&) {
    if (H5Aread(attribute.id(), H5T_NATIVE_INT64, &value) < 0) state_->fail(what, hdf5_reason());
  });
  return value;
}

double Hdf5Reader::number_attribute(const std::string& object, const std::string& name) const {
  double value = 0;
  state_->read_scalar(object, name, H5T_FLOAT, [&](const std::string& what, const Handle& attribute, const Handle&) {
    if (H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &value) < 0) state_->fail(what, hdf5_reason());
  });
  return value;
}

std::vector<double> Hdf5Reader::numbers(const std::string& name) const {
  const auto column = state_->open_column(name, H5T_FLOAT);
  std::vector<double> values(column.count);
  state_->read_column(name, column, H5T_NATIVE_DOUBLE, values.data());
  return values;
}

std::vector<std::int64_t> Hdf5Reader::integers(const std::string& name) const {
  const auto column = state_->open_column(name, H5T_INTEGER);
  std::vector<std::int64_t> values(column.count);
  state_->read_column(name, column, H5T_NATIVE_INT64, values.data());
  return values;
}

std::vector<std::string> Hdf5Reader::strings(const std::string& name) const {
  const auto column = state_->open_column(name, H5T_STRING);
  if (H5Tis_variable_str(column.type.id()) > 0) return state_->variable_strings(name, column);
  return state_->fixed_strings(name, column);
}

std::string Hdf5Reader::unit(const std::string& name) const {
  return has_attribute(name, "unit") ? text_attribute(name, "unit") : "";
}

}  // namespace tandem
