// What the host did in a profiled run: which operator called which, the steps, the layers' operators of each step in
// order of execution, and for everything else (autograd nodes, the optimizer, collectives) what it worked for.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "traces/importers/kineto_events.hpp"
#include "traces/importers/operator_sequence.hpp"

namespace tandem::kineto {

enum class Role : std::uint8_t {
  none,        // of nobody that is known
  loader,      // waits for input data
  optimizer,   // its step, and the clearing of gradients
  collective,  // communication
  bucketing,   // DistributedDataParallel's copies into and out of buckets
  forward,     // of a layer, or of an operator that is no layer
  backward,    // autograd
};
// The gradient that a part of a layer's backward pass computes.
enum class Part : std::uint8_t { unknown, data, weight };

struct HostOperator {
  std::uint32_t event = 0;
  std::uint32_t parent = kNone;
  std::uint32_t owner = kNone;  // the outermost operator that it belongs to, often itself; kNone: role none
  Role role = Role::none;       // an owner's; ask purpose()
  Part part = Part::unknown;
  std::int32_t step = -1;
};

struct Step {
  Nanoseconds start = 0, end = 0;
  std::vector<std::uint32_t> layers;  // operators (owners) of the layers, in order of execution
};

// What an operator is for: a layer's place in its step's order, or none (-1).
struct Purpose {
  Role role = Role::none;
  Part part = Part::unknown;
  std::int32_t step = -1;
  std::int32_t layer = -1;
};

class Host {
 public:
  // Input errors: operators nested deeper than 512.
  explicit Host(const Events& events);

  [[nodiscard]] const std::vector<HostOperator>& operators() const { return operators_; }
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  [[nodiscard]] bool annotated_steps() const { return annotated_; }
  [[nodiscard]] const Event& event(std::uint32_t op) const { return events_.events[operators_[op].event]; }
  [[nodiscard]] const std::string& name(std::uint32_t op) const { return events_.name(event(op)); }

  [[nodiscard]] OpKind kind(std::uint32_t op) const;

  // The innermost operator of a thread that runs at a time; kNone: none does.
  [[nodiscard]] std::uint32_t running(std::uint32_t thread, Nanoseconds at) const;
  [[nodiscard]] std::int32_t step_at(Nanoseconds at) const;  // -1: outside the steps
  [[nodiscard]] Purpose purpose(std::uint32_t op) const;
  // The layer's operator as the trace's builder wants it, without times.
  [[nodiscard]] ObservedOperator observed(std::uint32_t op) const;
  // Whether two steps ran the same layers.
  [[nodiscard]] bool same_layers(const Step& a, const Step& b) const;
  [[nodiscard]] bool is_accumulation(std::uint32_t op) const;  // of a parameter's gradient: autograd's node for it

 private:
  // Of a name.
  struct Meaning {
    enum class What : std::uint8_t {
      wrapper,  // what its callees are for, they say themselves
      step,
      loader,
      optimizer,
      collective,
      bucketing,
      node,
      accumulation,
      view,
      plain_operator,
    };
    What what = What::wrapper;
    OpKind kind = OpKind::other;  // of an operator, or of the operator that a node belongs to
    Part part = Part::unknown;
    bool product = false;  // of matrices

    explicit Meaning(std::string_view name);
    static What of(std::string_view name);
  };

  void read_meanings();
  void nest();
  void give_role(std::uint32_t op, const HostOperator* parent);
  [[nodiscard]] Part part_of_call(std::uint32_t op, std::uint32_t node);
  void find_steps();
  void find_leftovers();
  void link();
  void link_by_sequence(const std::vector<std::uint32_t>& nodes);
  void link_by_flows(const std::vector<std::uint32_t>& nodes);
  void link_by_order(const std::vector<std::uint32_t>& nodes);
  [[nodiscard]] std::uint32_t best(const std::vector<std::uint32_t>& candidates, std::uint32_t node) const;
  void find_layers();
  void attach_helpers();
  void attach_backward();
  [[nodiscard]] bool is_layer(std::uint32_t op) const;
  [[nodiscard]] const Meaning& meaning(std::uint32_t op) const;
  [[nodiscard]] const Shape* shape(std::uint32_t op, int position) const;

  const Events& events_;
  std::vector<Meaning> meanings_;                                 // by name
  std::vector<HostOperator> operators_;                           // by thread and start, callers before what they call
  std::vector<std::pair<std::uint32_t, std::uint32_t>> threads_;  // of each thread, its operators' range
  std::vector<Step> steps_;
  std::vector<std::uint32_t> link_;        // of a node, its forward operator
  std::vector<bool> linked_;               // of a forward operator, whether a node is its
  std::vector<std::int32_t> layer_;        // of an owner, the place of the layer it works for
  std::map<std::uint32_t, int> products_;  // matrix products seen in a node
  bool annotated_ = false;
};

}  // namespace tandem::kineto
