#include "traces/hdf5_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "tests/traces/sample_trace.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "traces/trace.hpp"

namespace tandem {
namespace {

using testing::full_trace;
using testing::read_bytes;
using testing::TemporaryFolder;
using testing::write_bytes;

template <class T>
std::span<const T> span(const std::vector<T>& values) {
  return values;
}

// The message of an input error, which is one line and starts with the path; "no error" otherwise.
std::string message(const std::string& path, auto&& call) {
  try {
    (void)call();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_TRUE(text.starts_with(path + ": ")) << text;
    EXPECT_EQ(text.find(path, 1), std::string::npos) << "the path is said twice: " << text;
    return text;
  }
  return "no error";
}

std::string read_message(const std::string& path) {
  return message(path, [&] { return read_trace(path); });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// ---- what goes in comes out ----

TEST(Hdf5File, RoundTripOfEveryType) {
  const TemporaryFolder folder;
  const auto path = folder.file("x.h5");
  const std::vector<double> numbers = {0.1, -0.0, 1e-310, std::numeric_limits<double>::infinity()};
  const std::vector<std::int64_t> wide = {INT64_MIN, -1, INT64_MAX};
  const std::vector<std::int32_t> narrow = {INT32_MIN, 0, INT32_MAX};
  const std::vector<std::string> texts = {"", "a", "Größe 日本", std::string(500, 'x')};
  {
    Hdf5Writer out(path);
    out.group("/empty/inside");
    out.attribute("/", "name", "Tandem µ");
    out.attribute("/", "none", "");
    out.attribute("/empty", "count", std::int64_t{-5});
    out.attribute("/empty", "ratio", 0.1);
    out.dataset("/a/b/numbers", span(numbers), "s", Hdf5Layout::extendible);
    out.dataset("/wide", span(wide), "B");
    out.dataset("/narrow", span(narrow));
    out.dataset("/texts", span(texts), "", Hdf5Layout::extendible);
    out.dataset("/nothing", std::span<const double>());
    out.dataset("/no_texts", std::span<const std::string>());
    out.attribute("/wide", "meaning", "the extremes");
    out.commit();
  }
  const Hdf5Reader in(path);
  EXPECT_EQ(in.text_attribute("/", "name"), "Tandem µ");
  EXPECT_EQ(in.text_attribute("/", "none"), "");
  EXPECT_EQ(in.integer_attribute("/empty", "count"), -5);
  EXPECT_EQ(in.number_attribute("/empty", "ratio"), 0.1);
  EXPECT_EQ(in.numbers("/a/b/numbers"), numbers);
  EXPECT_EQ(in.unit("/a/b/numbers"), "s");
  EXPECT_EQ(in.integers("/wide"), wide);
  EXPECT_EQ(in.integers("/narrow"), (std::vector<std::int64_t>{INT32_MIN, 0, INT32_MAX}));
  EXPECT_EQ(in.unit("/narrow"), "");
  EXPECT_EQ(in.strings("/texts"), texts);
  EXPECT_TRUE(in.numbers("/nothing").empty());
  EXPECT_TRUE(in.strings("/no_texts").empty());
  EXPECT_EQ(in.text_attribute("/wide", "meaning"), "the extremes");
  EXPECT_EQ(in.members("/"),
            (std::vector<std::string>{"a", "empty", "narrow", "no_texts", "nothing", "texts", "wide"}));
  EXPECT_EQ(in.members("/empty/inside"), std::vector<std::string>{});
  EXPECT_TRUE(in.has("/a/b") && !in.has("/a/c") && !in.has("/a/b/c/d"));
  EXPECT_TRUE(in.has_attribute("/", "name") && !in.has_attribute("/", "nome"));
}

TEST(Hdf5File, TypesAndNamesAreChecked) {
  const TemporaryFolder folder;
  const auto path = folder.file("x.h5");
  {
    Hdf5Writer out(path);
    out.dataset("/group/real", span(std::vector<double>{1}));
    out.dataset("/whole", span(std::vector<std::int64_t>{1}));
    out.attribute("/", "text", "t");
    out.commit();
  }
  const Hdf5Reader in(path);
  const auto why = [&](auto&& call) { return message(path, call); };
  EXPECT_TRUE(contains(why([&] { return in.integers("/group/real"); }), "'/group/real': holds real numbers; whole"));
  EXPECT_TRUE(contains(why([&] { return in.numbers("/whole"); }), "holds whole numbers; real"));
  EXPECT_TRUE(contains(why([&] { return in.strings("/whole"); }), "text are expected"));
  EXPECT_TRUE(contains(why([&] { return in.numbers("/group"); }), "is not a dataset"));
  EXPECT_TRUE(contains(why([&] { return in.members("/whole"); }), "is not a group"));
  EXPECT_TRUE(contains(why([&] { return in.numbers("/none"); }), "'/none': not in this file"));
  EXPECT_TRUE(contains(why([&] { return in.integer_attribute("/", "text"); }), "holds text"));
  EXPECT_TRUE(contains(why([&] { return in.text_attribute("/", "none"); }), "attribute 'none' is missing"));
}

TEST(Hdf5File, MistakesOfTheWriterAreErrors) {
  const TemporaryFolder folder;
  const auto path = folder.file("x.h5");
  Hdf5Writer out(path);
  out.dataset("/a", span(std::vector<double>{1}));
  const auto why = [&](auto&& call) {
    return message(path, [&] {
      call();
      return 0;
    });
  };
  EXPECT_TRUE(contains(why([&] { out.dataset("/a", span(std::vector<double>{1})); }), "'/a': "));
  EXPECT_TRUE(contains(why([&] { out.attribute("/none", "x", "y"); }), "'/none': "));
  EXPECT_TRUE(contains(why([&] { out.group("/a/b"); }), "'/a"));
  EXPECT_TRUE(contains(why([&] { out.attribute("/", "x", std::string_view("a\0b", 3)); }), "NUL"));
  for (const char* bad : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_TRUE(contains(why([&] { out.dataset("/t", span(std::vector<std::string>{bad})); }), "UTF-8"));
  }
  EXPECT_EQ(folder.entries(), 0U);  // nothing on disk before the commit
}

TEST(Hdf5File, TwoWritersOfOnePathDoNotMeet) {
  const TemporaryFolder folder;
  Hdf5Writer first(folder.file("x.h5"));
  Hdf5Writer second(folder.file("x.h5"));
  first.attribute("/", "who", "first");
  second.attribute("/", "who", "second");
  first.commit();
  second.commit();
  EXPECT_EQ(Hdf5Reader(folder.file("x.h5")).text_attribute("/", "who"), "second");
  EXPECT_EQ(folder.entries(), 1U);
}

// ---- another implementation reads and writes the same files ----

bool python(const std::string& script) {
  return std::system(("'" TANDEM_PYTHON "' -c \"" + script + "\" 2>/dev/null").c_str()) ==
         0;  // NOLINT: a test's own text
}

TEST(Hdf5File, H5pyReadsWhatWeWriteAndTheOtherWayRound) {
  if (!python("import h5py")) GTEST_SKIP() << TANDEM_PYTHON << " has no h5py";
  const TemporaryFolder folder;
  const auto path = folder.file("x.h5");
  write_trace(full_trace(), path);
  EXPECT_TRUE(python("import h5py; f = h5py.File('" + path + R"(')
assert f.attrs['device'].decode() == 'Prüfstand' and f.attrs['batch'] == 4
assert list(f['layers/name'].asstr()[:]) == ['conv', 'relu', 'add']
o = f['samples/forward_offset'][:]
assert list(f['samples/forward'][o[0]:o[1]]) == [1e-3, 2e-3] and f['samples/forward'].attrs['unit'] == b's'
)"));
  const auto theirs = folder.file("theirs.h5");
  EXPECT_TRUE(python("import h5py; f = h5py.File('" + theirs + R"(', 'w')
f.attrs['text'] = 'Größe'; f.attrs['n'] = 7; f.attrs['x'] = 0.5
f['texts'] = ['a', 'Größe', '']
f.create_dataset('small', data=[1, 2], dtype='uint8', chunks=(1,), maxshape=(None,), compression='gzip')
f.create_dataset('single', data=[0.5], dtype='float32')
f.create_dataset('huge', shape=(10**12,), dtype='f8', chunks=(1024,))
f.create_dataset('square', shape=(2, 2), dtype='f8')
f['link'] = h5py.SoftLink('/nowhere')
)"));
  const Hdf5Reader in(theirs);
  EXPECT_EQ(in.text_attribute("/", "text"), "Größe");
  EXPECT_EQ(in.integer_attribute("/", "n"), 7);
  EXPECT_EQ(in.number_attribute("/", "x"), 0.5);
  EXPECT_EQ(in.strings("/texts"), (std::vector<std::string>{"a", "Größe", ""}));
  EXPECT_EQ(in.integers("/small"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(in.numbers("/single"), (std::vector<double>{0.5}));
  EXPECT_TRUE(
      contains(message(theirs, [&] { return in.numbers("/huge"); }), "claims 1000000000000 elements of 8 bytes"));
  EXPECT_TRUE(contains(message(theirs, [&] { return in.numbers("/square"); }), "is not one-dimensional"));
  EXPECT_TRUE(contains(message(theirs, [&] { return in.numbers("/link"); }), "not in this file"));
}

// ---- disks and folders that refuse ----

TEST(Hdf5File, FoldersThatRefuseAreSaidSo) {
  const TemporaryFolder folder;
  const auto missing = folder.file("none/x.h5");
  EXPECT_EQ(message(missing, [&] { return write_trace(full_trace(), missing), 0; }),
            missing + ": cannot write: No such file or directory");
  const auto is_folder = folder.file("folder.h5");
  std::filesystem::create_directory(is_folder);
  EXPECT_EQ(message(is_folder, [&] { return write_trace(full_trace(), is_folder), 0; }),
            is_folder + ": cannot write: Is a directory");
  EXPECT_EQ(folder.entries(), 1U);
}

// In a child, because root may write everywhere and has to become somebody else first.
TEST(Hdf5File, AReadOnlyFolderIsSaidSo) {
  const TemporaryFolder folder;
  const auto path = folder.file("x.h5");
  ::chmod(folder.path().c_str(), 0555);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (::geteuid() == 0 && ::setuid(nobody) != 0) ::_exit(2);
    std::string said;
    try {
      write_trace(full_trace(), path);
    } catch (const Error& error) {
      said = error.what();
    }
    ::_exit(said == path + ": cannot write: Permission denied" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder.entries(), 0U);
}

// Stands for a full disk: the kernel refuses to let a file grow. In a child, for limits are for life.
TEST(Hdf5File, AWriteThatFailsLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  const auto path = folder.file("x.h5");
  write_trace(full_trace(), path);
  const auto before = read_bytes(path);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::string said;
    try {
      write_trace(full_trace(), path);
    } catch (const Error& error) {
      said = error.what();
    }
    ::_exit(said == path + ": cannot write: File too large" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_bytes(path), before);
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(Hdf5File, FilePermissionsFollowTheUmask) {
  const TemporaryFolder folder;
  const mode_t old = ::umask(027);
  write_trace(full_trace(), folder.file("x.h5"));
  ::umask(old);
  struct stat info {};
  ASSERT_EQ(::stat(folder.file("x.h5").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
}

// ---- files that are not what they claim ----

TEST(HostileFiles, NotATraceIsSaidInOneLine) {
  const TemporaryFolder folder;
  const auto path = folder.file("x.h5");
  EXPECT_EQ(read_message(path), path + ": cannot read: No such file or directory");
  EXPECT_EQ(read_message(folder.path().string()), folder.path().string() + ": cannot read: Is a directory");
  EXPECT_EQ(read_message("/dev/null"), "/dev/null: cannot read: not a regular file");
  write_bytes(path, "");
  EXPECT_EQ(read_message(path), path + ": not an HDF5 file: it is empty");
  write_bytes(path, "model,layer\nvgg16,conv1\n");
  EXPECT_EQ(read_message(path), path + ": not a trace (HDF5); 'tandem trace import' makes traces of other formats");
  {
    Hdf5Writer out(path);
    out.dataset("/runs/time", span(std::vector<double>{1}), "s");
    out.commit();
  }
  EXPECT_TRUE(contains(read_message(path), "an HDF5 file, but not a trace"));
  {
    Hdf5Writer out(path);
    out.attribute("/", "format", "tandem-trace");
    out.attribute("/", "format_version", std::int64_t{99});
    out.commit();
  }
  EXPECT_TRUE(contains(read_message(path), "format version 99; this program reads version 1"));
}

TEST(HostileFiles, CutAnywhereIsAnError) {
  const TemporaryFolder folder;
  const auto path = folder.file("x.h5");
  write_trace(full_trace(), path);
  const auto whole = read_bytes(path);
  for (std::size_t length = 0; length < whole.size(); length += 1 + length / 37) {
    write_bytes(path, whole.substr(0, length));
    EXPECT_NE(read_message(path), "no error") << length;
  }
  write_bytes(path, whole.substr(0, whole.size() - 1));
  EXPECT_TRUE(contains(read_message(path), "damaged HDF5 file: truncated file")) << read_message(path);
}

TEST(HostileFiles, RandomBytesAreErrors) {
  const TemporaryFolder folder;
  const auto path = folder.file("x.h5");
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    std::string bytes(1 + random.below(4000), '\0');
    for (char& c : bytes) c = static_cast<char>(random.below(256));
    if (i % 2 == 0) bytes.insert(0, "\x89HDF\r\n\x1a\n");  // with the signature, so that HDF5 looks further
    write_bytes(path, bytes);
    EXPECT_NE(read_message(path), "no error");
  }
}

// A copy of a good trace's file in which one dataset is replaced.
class Tampered {
 public:
  explicit Tampered(const std::string& path) : path_(path) {}

  template <class T>
  std::string with(const std::string& name, const std::vector<T>& values, std::string_view unit = "") {
    write_trace(full_trace(), path_);
    {
      const Hdf5Reader in(path_);
      Hdf5Writer out(path_);
      copy_root(in, out);
      copy_group(in, out, "/", name);
      out.dataset(name, span(values), unit);
      out.commit();
    }
    return read_message(path_);
  }

 private:
  static void copy_root(const Hdf5Reader& in, Hdf5Writer& out) {
    for (const char* name : {"format", "model", "recorder", "library", "library_version", "device", "dtype", "layout",
                             "cache_mode", "date"}) {
      out.attribute("/", name, in.text_attribute("/", name));
    }
    for (const char* name : {"format_version", "threads", "batch"}) {
      out.attribute("/", name, in.integer_attribute("/", name));
    }
    out.attribute("/", "clock_hz", in.number_attribute("/", "clock_hz"));
  }

  static void copy_group(const Hdf5Reader& in, Hdf5Writer& out, const std::string& group, const std::string& but) {
    for (const auto& member : in.members(group)) {
      const auto name = (group == "/" ? "" : group) + "/" + member;
      if (name == but) continue;
      if (try_copy(in, out, name)) continue;
      copy_group(in, out, name, but);
    }
  }

  static bool try_copy(const Hdf5Reader& in, Hdf5Writer& out, const std::string& name) {
    const auto attempt = [&](auto&& read) {
      try {
        const auto values = read();
        out.dataset(name, span(values), in.unit(name));
        return true;
      } catch (const Error&) {
        return false;
      }
    };
    return attempt([&] { return in.numbers(name); }) || attempt([&] { return in.integers(name); }) ||
           attempt([&] { return in.strings(name); });
  }

  std::string path_;
};

TEST(HostileFiles, DatasetsOfWrongTypeSizeOrContent) {
  const TemporaryFolder folder;
  Tampered tampered(folder.file("x.h5"));
  using Whole = std::vector<std::int64_t>;
  using Real = std::vector<double>;
  using Texts = std::vector<std::string>;
  EXPECT_EQ(tampered.with("/layers/in_place", Whole{0, 1, 0}), "no error");  // the copy itself is faithful
  const std::pair<std::string, std::string> cases[] = {
      {tampered.with("/layers/in_place", Real{0, 1, 0}), "'/layers/in_place': holds real numbers"},
      {tampered.with("/layers/in_place", Whole{0, 1}), "'/layers/in_place' has 2 rows; 3 are expected"},
      {tampered.with("/layers/in_place", Whole{0, 1, 2}), "'/layers/in_place' has a value of 2; 0 or 1"},
      {tampered.with("/layers/kind", Texts{"conv", "relu", "ad"}), "layer 'add': unknown kind 'ad'"},
      {tampered.with("/layers/name", Texts{}), "0 are expected"},
      {tampered.with("/layers/name", Texts{"a", "b", "a"}), "layer 'a': the name is given twice"},
      {tampered.with("/layers/inputs_offset", Whole{0, 0, 1, 9}), "'/layers/inputs_offset' does not rise"},
      {tampered.with("/layers/inputs_offset", Whole{0, 2, 1, 3}), "'/layers/inputs_offset' does not rise"},
      {tampered.with("/layers/inputs_offset", Whole{-1, 0, 1, 3}), "'/layers/inputs_offset' does not rise"},
      {tampered.with("/layers/inputs_offset", Whole{}), "'/layers/inputs_offset' has 0 rows; 4 are expected"},
      {tampered.with("/layers/inputs", Whole{0, 1, 1LL << 40}), "out of range"},
      {tampered.with("/layers/inputs", Whole{0, 1, 2}), "layer 'add': reads layer 2"},
      {tampered.with("/layers/groups", Whole{0, 1, 1}), "layer 'conv': groups is 0"},
      {tampered.with("/layers/activation_bytes", Whole{-1, 1, 1}, "B"), "layer 'conv': the output is -1 bytes"},
      {tampered.with("/layers/activation_bytes", Whole{1, 1, 1}, "MB"), "has unit 'MB'; 'B' is expected"},
      {tampered.with("/layers/activation_bytes", Whole{1LL << 62, 1, 1}, "B"), "layer 'conv': the output is 4611686"},
      {tampered.with("/samples/forward", Real{1, 1e308}, "s"), "layer 'conv': forward has a sample of 1e+308 s"},
      {tampered.with("/samples/forward", Real{1, 2}, "ms"), "'/samples/forward' has unit 'ms'; 's' is expected"},
      {tampered.with("/samples/forward", Real{1, NAN}, "s"), "layer 'conv': forward has a sample of nan s"},
      {tampered.with("/samples/forward", Real{1, 2, 3}, "s"), "does not rise from 0 to the 3 values"},
      {tampered.with("/parameters/layer", Whole{0, 3}), "'/parameters/layer' does not rise through layers 0 to 2"},
      {tampered.with("/splits/axis", Texts{"batch", "depth"}), "unknown split axis 'depth'"},
      {tampered.with("/notes", Whole{1}), "'/notes': holds whole numbers; text"},
  };
  for (const auto& [said, expected] : cases) EXPECT_TRUE(contains(said, expected)) << said << " / " << expected;
}

// Every single byte of a small file changed in turn, one way each: an error or a valid trace, never a crash. Each in
// a child process, because HDF5 itself is not proof against forged metadata; a crash there fails the test.
TEST(HostileFiles, ChangedBytesAreErrorsOrValidTraces) {
  const TemporaryFolder folder;
  const auto path = folder.file("x.h5");
  write_trace(full_trace(), path);
  const auto whole = read_bytes(path);
  Random random(11);
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t seed = random.next();
    const pid_t child = ::fork();
    if (child == 0) {
      Random own(seed);
      for (int i = 0; i < 25; ++i) {
        auto bytes = whole;
        bytes[own.below(static_cast<std::uint32_t>(bytes.size()))] ^= static_cast<char>(1U << own.below(8));
        write_bytes(path, bytes);
        try {
          (void)read_trace(path);
        } catch (const Error&) {
        }
      }
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tandem
