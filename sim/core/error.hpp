// The one error type of Tandem.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tandem {

// What went wrong, as the caller must treat it: `usage` is a mistake on the command line or in a study file
// (exit status 2); `input` is a file or value that is not what it claims to be; `model` is a run that has no
// answer (it did not complete); `internal` is a defect of Tandem itself; `machine` says nothing of the run: memory or
// processes are lacking here, or somebody killed it. Journals hold these numbers.
enum class ErrorKind { usage, input, model, internal, machine };

// A message says what, where, the value seen and what is accepted. Context is added from the inside out, so that
// the text reads "traces/data/vgg16.h5: layer 'fc6': ...".
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }
  [[nodiscard]] int exit_status() const noexcept { return kind_ == ErrorKind::usage ? 2 : 1; }

  // The same error, said to have happened at `where`.
  [[nodiscard]] Error within(std::string_view where) const {
    return Error(kind_, std::string(where) + ": " + message_);
  }

 private:
  ErrorKind kind_;
  std::string message_;
};

[[nodiscard]] inline Error usage_error(std::string message) {
  return {ErrorKind::usage, std::move(message)};
}
[[nodiscard]] inline Error input_error(std::string message) {
  return {ErrorKind::input, std::move(message)};
}
[[nodiscard]] inline Error model_error(std::string message) {
  return {ErrorKind::model, std::move(message)};
}
[[nodiscard]] inline Error internal_error(std::string message) {
  return {ErrorKind::internal, std::move(message)};
}
[[nodiscard]] inline Error machine_error(std::string message) {
  return {ErrorKind::machine, std::move(message)};
}

// Runs `body` and puts `where` in front of any Error that leaves it.
template <class Body>
decltype(auto) with_context(std::string_view where, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    throw error.within(where);
  }
}

}  // namespace tandem
