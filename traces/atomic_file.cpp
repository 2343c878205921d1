#include "traces/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

[[noreturn]] void fail_system(const std::string& path, const std::string& what, int error) {
  throw input_error(fmt::format("{}: {}: {}", path, what, std::strerror(error)));
}

// Removes its file unless told that it has been renamed.
class TemporaryFile {
 public:
  // Beside `path`, so that the rename stays within one file system. O_EXCL and mode 0666 rather than mkstemp, whose
  // 0600 would survive the rename.
  explicit TemporaryFile(const std::string& path) {
    static std::atomic<unsigned> counter{0};
    const auto slash = path.rfind('/');
    const auto split = slash == std::string::npos ? 0 : slash + 1;
    while (fd_ < 0) {
      name_ = fmt::format("{}.{}.tmp.{}.{}", path.substr(0, split), path.substr(split), ::getpid(), counter++);
      fd_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd_ < 0 && errno != EEXIST) {
        const int error = errno;
        name_.clear();
        fail_system(path, "cannot write", error);
      }
    }
  }
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::string_view bytes, const std::string& path) {
    for (std::size_t done = 0; done < bytes.size();) {
      const auto n = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_system(path, "cannot write", errno);
      done += static_cast<std::size_t>(n);
    }
    if (::fsync(fd_) != 0) fail_system(path, "cannot write", errno);
    if (::close(std::exchange(fd_, -1)) != 0) fail_system(path, "cannot write", errno);
  }

  void rename_to(const std::string& path) {
    if (::rename(name_.c_str(), path.c_str()) != 0) fail_system(path, "cannot write", errno);
    name_.clear();
    // The rename itself reaches the disk with the folder. Not every file system can sync one, and the data is safe.
    const auto slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
      ::fsync(fd);
      ::close(fd);
    }
  }

 private:
  std::string name_;
  int fd_ = -1;
};

}  // namespace

void write_atomically(const std::string& path, std::string_view bytes) {
  TemporaryFile temporary(path);
  temporary.write(bytes, path);
  temporary.rename_to(path);
}

}  // namespace tandem
