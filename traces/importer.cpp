#include "traces/importer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

std::string printable(std::string text) {
  for (auto& c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) c = '?';
  }
  return text;
}

std::string recognize(std::string_view content) {
  const auto& importers = Registry<Importer>::instance();
  const auto head = content.substr(0, 64 << 10);
  std::vector<std::string> matches;
  for (const auto& name : importers.names()) {
    if (importers.make(name)->recognizes(head)) matches.push_back(name);
  }
  if (matches.size() == 1) return matches[0];
  if (content.starts_with("\x89HDF\r\n")) {
    throw input_error("is an HDF5 file already; tandem trace check says whether it is a trace");
  }
  if (matches.empty()) {
    throw input_error(
        fmt::format("no importer recognizes this file; there are: {}", fmt::join(importers.names(), ", ")));
  }
  throw usage_error(fmt::format("several importers recognize this file, name one: {}", fmt::join(matches, ", ")));
}

std::string with_parameters(const std::string& importer, const std::string& parameters) {
  if (parameters.empty()) return importer;
  return importer + (importer.find(':') == std::string::npos ? ':' : ',') + parameters;
}

// "profiles/vgg16.graph.txt" and "profiles/vgg16/graph.txt" are both called vgg16.
std::string name_of(const std::filesystem::path& path) {
  std::string stem = path.filename().string();
  stem = stem.substr(0, stem.find('.'));
  if (stem == "graph" && path.has_parent_path()) return path.parent_path().filename().string();
  return stem;
}

void append(Samples& to, const Samples& from) {
  to.seconds.insert(to.seconds.end(), from.seconds.begin(), from.seconds.end());
}

bool same_layer(const Layer& a, const Layer& b) {
  return a.name == b.name && a.kind == b.kind && a.inputs == b.inputs && a.input_shapes == b.input_shapes &&
         a.output_shape == b.output_shape && a.parameters == b.parameters;
}

// Layers, batch and collectives are one rank's; times are everybody's.
void pool(Imported& all, const Imported& rank) {
  auto& trace = all.trace;
  const auto& other = rank.trace;
  const std::pair<std::string_view, std::string Trace::*> alike[] = {
      {"recorder", &Trace::recorder}, {"device", &Trace::device}, {"framework", &Trace::framework}};
  for (const auto& [what, field] : alike) {
    if (trace.*field != other.*field) {
      throw input_error(fmt::format("its {} is '{}' where the first rank's is '{}'", what, other.*field, trace.*field));
    }
  }
  if (trace.batch != other.batch) {
    throw input_error(fmt::format("batch {} where the first rank has {}", other.batch, trace.batch));
  }
  if (!std::equal(trace.layers.begin(), trace.layers.end(), other.layers.begin(), other.layers.end(), same_layer)) {
    throw input_error("its layers differ from those of the first rank");
  }
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      append(trace.layers[i].samples[pass], other.layers[i].samples[pass]);
    }
  }
  append(trace.iteration_forward, other.iteration_forward);
  append(trace.iteration_backward, other.iteration_backward);
  append(trace.iteration_update, other.iteration_update);
  for (const auto& time : other.outside) {
    const auto same = std::find_if(trace.outside.begin(), trace.outside.end(),
                                   [&](const OutsideTime& t) { return t.kind == time.kind; });
    if (same == trace.outside.end()) {
      trace.outside.push_back(time);
    } else {
      append(same->samples, time.samples);
    }
  }
  all.report.entries.insert(all.report.entries.end(), rank.report.entries.begin(), rank.report.entries.end());
}

}  // namespace

std::string_view to_text(ImportReport::Fate fate) {
  constexpr std::string_view texts[] = {"used", "kept apart", "dropped"};
  return texts[static_cast<std::size_t>(fate)];
}

Imported import_source(const SourceFile& source, const std::string& importer, const std::string& parameters) {
  const auto import = [&] {
    if (source.content.empty()) throw input_error("the file is empty");
    const auto name = importer.empty() ? recognize(source.content) : importer;
    const auto plugin = Registry<Importer>::instance().make(with_parameters(name, parameters));
    Imported imported = plugin->read(source);
    if (imported.trace.model.empty()) imported.trace.model = name_of(source.path);
    validate(imported.trace);
    return imported;
  };
  try {
    return import();
  } catch (const Error& error) {
    // Messages quote the file, whose text may hold anything: they stay one line.
    throw Error(error.kind(), printable(error.what())).within(source.path);
  }
}

Imported import_trace(const std::vector<std::string>& paths, const std::string& importer,
                      const std::string& parameters) {
  if (paths.empty()) throw usage_error("no file to import");
  for (std::size_t i = 1; i < paths.size(); ++i) {
    if (std::find(paths.begin(), paths.begin() + static_cast<long>(i), paths[i]) !=
        paths.begin() + static_cast<long>(i)) {
      throw usage_error(fmt::format("{} is given twice", paths[i]));
    }
  }
  Imported all = import_source(read_source(paths[0]), importer, parameters);
  for (std::size_t i = 1; i < paths.size(); ++i) {
    const auto rank = import_source(read_source(paths[i]), importer, parameters);
    with_context(paths[i], [&] { pool(all, rank); });
  }
  if (paths.size() > 1) all.trace.notes.push_back(fmt::format("times of {} ranks, pooled", paths.size()));
  return all;
}

}  // namespace tandem
