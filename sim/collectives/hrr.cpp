// HRR, hierarchical rotating rails: the all-reduce of a mesh-rail-cube MRC(m; n_1..n_k). The module exchanges directly
// and position j keeps segment j of m; each position reduces its segment over the rails of its own level first, hands
// it to the next position, whose rails are of the next level, and so on through all k levels; then everything in
// reverse as an all-gather. All levels are busy at any moment. With M modules, mesh and rail ports of rate B, one port
// to a rail, equal radices n, sigma(n) = log2 n (halving), n-1 (ring) or 1 (direct), one chunk:
//
//   T = 2 [k alpha_mesh + k sigma(n) alpha_rail] + 2S/(mB) (mu + rho)
//   mu = 1 + 1/n + .. + 1/n^(k-1)   the segment, and what is left of it at each of the k-1 moves
//   rho = 1 - 1/M
//
// With several chunks, mesh and rail phases (the stages) overlap, and mu + rho becomes max(mu, rho). BlueConnect on the
// same network takes the levels in the same order everywhere, so that rails of one level work and the others wait.
//
// Where positions have rails of t levels the buffer is cut into t parts, which begin with different ones of them; where
// every position has rails of every level, nothing has to move.
//
// Failures: with several levels, routes go round. With one, the positions that have lost a rail or a rank give their
// segments to the others, so that a segment grows from S/m to S/(m-1), and a cut cable of a module is shared out among
// the m-2 others that join its ends (RemainingRails).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"
#include "sim/collectives/side_by_side.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

struct Cube {
  int positions = 1;
  int modules = 1;
  std::vector<int> radices;  // of levels, 1 included
  std::vector<Exchange> rails;
  Exchange module = Exchange::direct;

  [[nodiscard]] int levels() const { return static_cast<int>(radices.size()); }
  [[nodiscard]] int radix(int level) const { return radices[static_cast<std::size_t>(level)]; }
  [[nodiscard]] int below(int level) const {
    int product = 1;
    for (int l = 0; l < level; ++l) product *= radix(l);
    return product;
  }
  // Of one level, among modules.
  [[nodiscard]] NestedDigit digit(int level) const {
    return {radix(level), below(level), rails[static_cast<std::size_t>(level)]};
  }
};

class RotatingRails final : public CollectiveSchedule {
 public:
  // Position p works on level (p + shift) mod k.
  RotatingRails(Cube cube, int shift, Bytes bytes)
      : CollectiveSchedule(cube.positions * cube.modules, bytes), cube_(std::move(cube)), shift_(shift) {
    module_ = nested_all_reduce(cube_.positions, bytes, {{cube_.positions, 1, cube_.module}});
    for (int j = 0; j < cube_.positions; ++j) segments_.push_back(segment(j));
    plan_moves();
    plan_phases();
  }

  [[nodiscard]] int steps() const override { return phases_.empty() ? 0 : phases_.back().first + phases_.back().steps; }
  [[nodiscard]] int stages() const override { return std::max(1, static_cast<int>(phases_.size())); }
  [[nodiscard]] int stage(int step) const override {
    const auto after = std::upper_bound(phases_.begin(), phases_.end(), step,
                                        [](int value, const Phase& phase) { return value < phase.first; });
    return static_cast<int>(after - phases_.begin()) - 1;
  }

  void sends(int step, int member, std::vector<Send>& out) const override {
    out.clear();
    const auto& phase = phases_[static_cast<std::size_t>(stage(step))];
    const int position = member % cube_.positions;
    const int module = member / cube_.positions;
    switch (phase.kind) {
      case Phase::Kind::module:
        module_->sends(step - phase.first + (phase.gather ? module_->steps() / 2 : 0), position, out);
        for (auto& send : out) send.to += module * cube_.positions;
        break;
      case Phase::Kind::move:
        for (const auto& move : moves_[static_cast<std::size_t>(phase.turn)]) {
          if ((phase.gather ? move.to : move.from) != position) continue;
          const int to = phase.gather ? move.from : move.to;
          out.push_back({module * cube_.positions + to, held(move.piece, module, phase.turn), false});
        }
        break;
      case Phase::Kind::rail: {
        const auto& segment = of_turn(position, phase.turn);
        const int inner = step_in(segment, phase, step);
        if (inner < 0) break;
        segment.rails->sends(inner, module, out);
        for (auto& send : out) {
          send.to = send.to * cube_.positions + position;
          send.range.begin += segment.range.begin;
          send.range.end += segment.range.begin;
        }
        break;
      }
    }
  }

  [[nodiscard]] int receives(int step, int member) const override {
    const auto& phase = phases_[static_cast<std::size_t>(stage(step))];
    const int position = member % cube_.positions;
    switch (phase.kind) {
      case Phase::Kind::module:
        return module_->receives(step - phase.first + (phase.gather ? module_->steps() / 2 : 0), position);
      case Phase::Kind::move: {
        const auto& moves = moves_[static_cast<std::size_t>(phase.turn)];
        return static_cast<int>(std::count_if(moves.begin(), moves.end(), [&](const Move& move) {
          return (phase.gather ? move.from : move.to) == position;
        }));
      }
      case Phase::Kind::rail: {
        const auto& segment = of_turn(position, phase.turn);
        const int inner = step_in(segment, phase, step);
        return inner < 0 ? 0 : segment.rails->receives(inner, member / cube_.positions);
      }
    }
    return 0;
  }

 private:
  // In turn u, position p works on the segment of position p-u.
  struct Phase {
    enum class Kind { module, move, rail };
    Kind kind = Kind::module;
    int turn = 0;
    bool gather = false;
    int steps = 0;
    int first = 0;
  };
  struct Segment {
    ByteRange range;
    std::shared_ptr<const CollectiveSchedule> rails;  // among modules
    std::vector<int> first;                           // step, by stage of `rails`
    std::vector<int> stage;                           // reduce-scatter's, by turn; -1 where the level has radix 1
    std::vector<int> levels;                          // those of radix above 1, in order
  };
  struct Move {
    int piece = 0;
    int from = 0;
    int to = 0;
  };

  [[nodiscard]] Segment segment(int j) const {
    Segment result;
    result.range = part_of({0, bytes().count()}, cube_.positions, j);
    std::vector<NestedDigit> digits;
    for (int turn = 0; turn < cube_.levels(); ++turn) {
      const int level = (j + shift_ + turn) % cube_.levels();
      const bool empty = cube_.radix(level) == 1;
      result.stage.push_back(empty ? -1 : static_cast<int>(digits.size()));
      if (empty) continue;
      digits.push_back(cube_.digit(level));
      result.levels.push_back(level);
    }
    result.rails = nested_all_reduce(cube_.modules, Bytes(result.range.size()), std::move(digits));
    result.first = first_steps(*result.rails);
    return result;
  }

  // A segment moves to the position of a turn only where that has something to reduce.
  void plan_moves() {
    moves_.resize(static_cast<std::size_t>(cube_.levels()));
    for (int j = 0; j < cube_.positions; ++j) {
      int at = j;
      for (int turn = 1; turn < cube_.levels(); ++turn) {
        if (segments_[static_cast<std::size_t>(j)].stage[static_cast<std::size_t>(turn)] < 0) continue;
        const int to = (j + turn) % cube_.positions;
        moves_[static_cast<std::size_t>(turn)].push_back({j, at, to});
        at = to;
      }
    }
  }

  void plan_phases() {
    std::vector<Phase> scatter{{Phase::Kind::module, 0, false, module_->steps() / 2, 0}};
    for (int turn = 0; turn < cube_.levels(); ++turn) {
      scatter.push_back({Phase::Kind::move, turn, false, moves_[static_cast<std::size_t>(turn)].empty() ? 0 : 1, 0});
      int longest = 0;
      for (const auto& segment : segments_) {
        const int stage = segment.stage[static_cast<std::size_t>(turn)];
        if (stage < 0) continue;
        const auto s = static_cast<std::size_t>(stage);
        longest = std::max(longest, segment.first[s + 1] - segment.first[s]);
      }
      scatter.push_back({Phase::Kind::rail, turn, false, longest, 0});
    }
    std::erase_if(scatter, [](const Phase& phase) { return phase.steps == 0; });
    phases_ = scatter;
    for (auto phase = scatter.rbegin(); phase != scatter.rend(); ++phase) {
      phases_.push_back(*phase);
      phases_.back().gather = true;
    }
    int first = 0;
    for (auto& phase : phases_) {
      phase.first = first;
      first += phase.steps;
    }
  }

  [[nodiscard]] const Segment& of_turn(int position, int turn) const {
    return segments_[static_cast<std::size_t>((position - turn + cube_.positions) % cube_.positions)];
  }

  // -1 where the segment has nothing to do in this step, because its level is empty or has a smaller radix.
  [[nodiscard]] static int step_in(const Segment& segment, const Phase& phase, int step) {
    int stage = segment.stage[static_cast<std::size_t>(phase.turn)];
    if (stage < 0) return -1;
    if (phase.gather) stage = segment.rails->stages() - 1 - stage;
    const auto s = static_cast<std::size_t>(stage);
    const int inner = segment.first[s] + step - phase.first;
    return inner < segment.first[s + 1] ? inner : -1;
  }

  // What a module still has of segment j when it gets to a turn.
  [[nodiscard]] ByteRange held(int j, int module, int turn) const {
    const auto& segment = segments_[static_cast<std::size_t>(j)];
    auto range = segment.range;
    for (int s = 0; s < segment.stage[static_cast<std::size_t>(turn)]; ++s) {
      const int level = segment.levels[static_cast<std::size_t>(s)];
      range = part_of(range, cube_.radix(level), module / cube_.below(level) % cube_.radix(level));
    }
    return range;
  }

  Cube cube_;
  int shift_;
  std::shared_ptr<const CollectiveSchedule> module_;
  std::vector<Segment> segments_;         // by position
  std::vector<std::vector<Move>> moves_;  // by turn
  std::vector<Phase> phases_;
};

// One level, of whose positions some have lost a rail, a way to it, or a member: the others hold the buffer among them.
// All that are left of a module hand each holder its segment; the holders' rails reduce it; then all in reverse.
// With h holders, one chunk: T = 2 [alpha_mesh + sigma(n) alpha_rail] + 2S/(hB) (1 + rho), where h was m.
//
// Where a cable of a module is cut, its segment is spread over those that both its ends are joined to, r of them: each
// adds a part to what it sends itself, in a step before, and hands a part on in a step behind. The cut costs
// 2 [alpha_mesh + S/(hrB)], where a detour would send two segments over one cable. (With halving a little more: what is
// late shares its port with the next step's messages from modules that are not.)
class RemainingRails final : public CollectiveSchedule {
 public:
  RemainingRails(Cube cube, NestedDigit level, std::shared_ptr<const BrokenRectangle> remains, int workers, Bytes bytes)
      : CollectiveSchedule(workers, bytes), cube_(std::move(cube)), remains_(std::move(remains)) {
    places_.resize(static_cast<std::size_t>(workers));
    for (std::size_t place = 0; place < remains_->members.size(); ++place) {
      const int member = remains_->members[place];
      if (member >= 0) places_[static_cast<std::size_t>(member)] = static_cast<int>(place);
    }
    for (int position = 0; position < cube_.positions; ++position) {
      if (remains_->broken[static_cast<std::size_t>(position)] == 0) holders_.push_back(position);
    }
    for (std::size_t h = 0; h < holders_.size(); ++h) {
      rails_.push_back(nested_all_reduce(cube_.modules, Bytes(segment(h).size()), {level}));
    }
    plan_relays();
  }

  [[nodiscard]] int steps() const override { return 2 * before() + rails_.front()->steps(); }
  [[nodiscard]] int stages() const override { return 2 + rails_.front()->stages(); }
  [[nodiscard]] int stage(int step) const override {
    if (step < before()) return 0;
    return step >= steps() - before() ? stages() - 1 : 1 + rails_.front()->stage(step - before());
  }

  void sends(int step, int member, std::vector<Send>& out) const override {
    out.clear();
    const int holder = holder_of(member);
    if (step >= before() && step < steps() - before()) {
      if (holder < 0) return;
      const auto h = static_cast<std::size_t>(holder);
      rails_[h]->sends(step - before(), module_of(member), out);
      for (auto& send : out) {
        send.to = at(send.to, holders_[h]);
        send.range.begin += segment(h).begin;
        send.range.end += segment(h).begin;
      }
      return;
    }
    const int module = module_of(member);
    if (step < before() - 1) {
      for (const auto& part : given_[static_cast<std::size_t>(member)]) out.push_back({part.other, part.range, true});
    } else if (step < before()) {
      for (std::size_t h = 0; h < holders_.size(); ++h) {
        const int to = at(module, holders_[h]);
        if (to != member && !is_cut(member, to)) out.push_back({to, segment(h), true});
      }
    } else if (step > steps() - before()) {
      for (const auto& part : relayed_[static_cast<std::size_t>(member)])
        out.push_back({part.other, part.range, false});
    } else if (holder >= 0) {
      for (int position = 0; position < cube_.positions; ++position) {
        const int to = at(module, position);
        if (to < 0 || to == member || is_cut(member, to)) continue;
        out.push_back({to, segment(static_cast<std::size_t>(holder)), false});
      }
    }
  }

  [[nodiscard]] int receives(int step, int member) const override {
    const int holder = holder_of(member);
    if (step >= before() && step < steps() - before()) {
      return holder < 0 ? 0 : rails_[static_cast<std::size_t>(holder)]->receives(step - before(), module_of(member));
    }
    if (step < before() - 1) return static_cast<int>(relayed_[static_cast<std::size_t>(member)].size());
    if (step > steps() - before()) return static_cast<int>(given_[static_cast<std::size_t>(member)].size());
    const bool scatters = step < before();
    if (scatters && holder < 0) return 0;
    int senders = 0;
    for (int position = 0; position < cube_.positions; ++position) {
      const int other = at(module_of(member), position);
      if (other < 0 || other == member || is_cut(other, member)) continue;
      if (scatters || holder_of(other) >= 0) ++senders;
    }
    return senders;
  }

 private:
  struct Part {
    int other = 0;  // member
    ByteRange range;
  };

  [[nodiscard]] int at(int module, int position) const {
    return remains_->members[static_cast<std::size_t>(module * cube_.positions + position)];
  }
  [[nodiscard]] int module_of(int member) const { return places_[static_cast<std::size_t>(member)] / cube_.positions; }
  // Index into holders_, or -1.
  [[nodiscard]] int holder_of(int member) const {
    const int position = places_[static_cast<std::size_t>(member)] % cube_.positions;
    const auto found = std::lower_bound(holders_.begin(), holders_.end(), position);
    return found != holders_.end() && *found == position ? static_cast<int>(found - holders_.begin()) : -1;
  }
  [[nodiscard]] ByteRange segment(std::size_t h) const {
    return part_of({0, bytes().count()}, static_cast<std::int64_t>(holders_.size()), static_cast<std::int64_t>(h));
  }

  // Steps within modules before the rails: relays, if there are any, and the exchange; as many behind them.
  [[nodiscard]] int before() const { return cut_.empty() ? 1 : 2; }
  [[nodiscard]] bool is_cut(int from, int to) const { return cut_.contains({from, to}); }

  // A pair that nobody is joined to on both sides is left to the network's routes.
  void plan_relays() {
    given_.resize(places_.size());
    relayed_.resize(places_.size());
    std::set<std::pair<int, int>> missing;
    for (const auto& [a, b] : remains_->cut) {
      missing.insert({a, b});
      missing.insert({b, a});
    }
    for (const auto& [from, to] : missing) {
      std::vector<int> relays;
      const int first = from - from % cube_.positions;
      for (int place = first; place < first + cube_.positions; ++place) {
        const bool joined =
            place != from && place != to && !missing.contains({from, place}) && !missing.contains({place, to});
        if (joined && member_at(place) >= 0) relays.push_back(member_at(place));
      }
      if (relays.empty() || member_at(from) < 0 || member_at(to) < 0) continue;
      cut_.insert({member_at(from), member_at(to)});
      const int holder = holder_of(member_at(to));
      if (holder < 0) continue;
      const auto parts = static_cast<std::int64_t>(relays.size());
      for (std::size_t i = 0; i < relays.size(); ++i) {
        const auto part = part_of(segment(static_cast<std::size_t>(holder)), parts, static_cast<std::int64_t>(i));
        given_[static_cast<std::size_t>(member_at(from))].push_back({relays[i], part});
        relayed_[static_cast<std::size_t>(relays[i])].push_back({member_at(from), part});
      }
    }
  }
  [[nodiscard]] int member_at(int place) const { return remains_->members[static_cast<std::size_t>(place)]; }

  std::set<std::pair<int, int>> cut_;       // members, both ways round
  std::vector<std::vector<Part>> given_;    // by member: to relays, and from them in the end
  std::vector<std::vector<Part>> relayed_;  // by relay

  Cube cube_;
  std::shared_ptr<const BrokenRectangle> remains_;
  std::vector<int> places_;                                       // by member
  std::vector<int> holders_;                                      // positions, ascending
  std::vector<std::shared_ptr<const CollectiveSchedule>> rails_;  // among modules, by holder
};

class Hrr final : public CollectiveAlgorithm {
 public:
  explicit Hrr(std::string rails) : rails_(std::move(rails)) {
    if (rails_ != "native") (void)exchange_from_text(rails_);
  }

  [[nodiscard]] bool by_address() const override { return true; }
  [[nodiscard]] std::string note(const GroupShape& shape) const override {
    if (shape.digits.size() != 1) return "";
    const auto cube = cube_of(shape.digits, shape.sides);
    return one_level_note("hrr", cube.positions > 1 ? cube.module : exchange_of(shape.digits[0]));
  }
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> all_reduce(const GroupShape& shape,
                                                                     Bytes bytes) const override {
    if (auto schedule = around_failures(shape, bytes)) return schedule;
    if (shape.digits.empty() && shape.workers > 1) throw no_rectangle(shape);
    const auto cube = cube_of(shape.digits, shape.sides);
    if (reaches_everything(shape, cube)) return without_moves(cube, bytes);
    const auto shifts = shifts_of(shape, cube);
    return side_by_side(shape.workers, bytes, static_cast<int>(shifts.size()), [&](int index, Bytes share) {
      return SchedulePart{std::make_shared<RotatingRails>(cube, shifts[static_cast<std::size_t>(index)], share), {}};
    });
  }

 private:
  static Error no_rectangle(const GroupShape& shape) {
    if (shape.remains) {
      return usage_error(fmt::format(
          "hrr goes on without lost ranks only where modules are full meshes with one level of rails, and a position "
          "of "
          "the module has lost none; the {} ranks that are left have no such place; use ring, or auto, which picks "
          "among all that take any number of ranks",
          shape.workers));
    }
    return usage_error(
        fmt::format("hrr needs ranks that fill a rectangle of the topology's addresses, which these {} do not; choose "
                    "another number of ranks, or use ring",
                    shape.workers));
  }

  // Nothing where the schedule stays as it is: nothing has failed, or only what routes go round. Rails of several
  // levels take turns over all positions, so that none can be left out: their routes go round, too.
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> around_failures(const GroupShape& shape, Bytes bytes) const {
    if (!shape.remains) return nullptr;
    const auto& [digits, sides, members, broken, cut] = *shape.remains;
    const auto left = std::count(broken.begin(), broken.end(), 0);
    if (left == 0 || (left == static_cast<std::ptrdiff_t>(broken.size()) && cut.empty())) return nullptr;
    if (digits.size() != 2 || digits[0].kind != DigitKind::full_mesh || sides[0] == 1) return nullptr;
    const auto cube = cube_of(digits, sides);
    if (cube.rails.empty()) return nullptr;
    const NestedDigit level{cube.modules, 1, exchange_of(digits[1])};
    return std::make_shared<RemainingRails>(cube, level, shape.remains, shape.workers, bytes);
  }

  [[nodiscard]] Cube cube_of(const std::vector<Digit>& digits, std::vector<int> sides) const {
    if (sides.empty()) {
      for (const auto& digit : digits) sides.push_back(digit.radix);
    }
    Cube cube;
    if (sides.empty()) return cube;
    cube.positions = sides[0];
    cube.radices.assign(sides.begin() + 1, sides.end());
    for (const int radix : cube.radices) cube.modules *= radix;
    auto digit = digits.begin();
    if (cube.positions > 1 && digit++->kind == DigitKind::ring) cube.module = Exchange::ring;
    for (const int radix : cube.radices) cube.rails.push_back(radix > 1 ? exchange_of(*digit++) : Exchange::direct);
    return cube;
  }

  [[nodiscard]] Exchange exchange_of(const Digit& digit) const {
    if (rails_ != "native") return exchange_from_text(rails_);
    if (digit.kind == DigitKind::ring) return Exchange::ring;
    return is_power_of_two(digit.radix) ? Exchange::halving : Exchange::ring;
  }

  // Positions whose reach is not known are taken for those of a mesh-rail-cube with one rail port a device.
  static bool reaches(const GroupShape& shape, const Cube& cube, int position, int level) {
    if (cube.radix(level) == 1) return true;
    if (shape.reach.empty()) return position % cube.levels() == level;
    return (shape.reach[static_cast<std::size_t>(position)] >> (level + 1) & 1U) != 0;
  }

  static bool reaches_everything(const GroupShape& shape, const Cube& cube) {
    for (int position = 0; position < cube.positions; ++position) {
      for (int level = 0; level < cube.levels(); ++level) {
        if (!reaches(shape, cube, position, level)) return false;
      }
    }
    return true;
  }

  static std::shared_ptr<const CollectiveSchedule> without_moves(const Cube& cube, Bytes bytes) {
    std::vector<NestedDigit> rails;
    for (int level = 0; level < cube.levels(); ++level) {
      if (cube.radix(level) == 1) continue;
      rails.push_back(cube.digit(level));
      rails.back().stride *= cube.positions;
    }
    const int workers = cube.positions * cube.modules;
    return side_by_side(workers, bytes, std::max(1, static_cast<int>(rails.size())), [&](int index, Bytes share) {
      auto digits = rails;
      std::rotate(digits.begin(), digits.begin() + (digits.empty() ? 0 : index), digits.end());
      digits.insert(digits.begin(), {cube.positions, 1, cube.module});
      return SchedulePart{nested_all_reduce(workers, share, std::move(digits)), {}};
    });
  }

  // How far the levels may be turned against the positions so that every position has rails of its own.
  static std::vector<int> shifts_of(const GroupShape& shape, const Cube& cube) {
    std::vector<int> shifts;
    for (int shift = 0; shift < cube.levels(); ++shift) {
      bool fits = cube.positions % cube.levels() == 0;
      for (int position = 0; position < cube.positions && fits; ++position) {
        fits = reaches(shape, cube, position, (position + shift) % cube.levels());
      }
      if (fits) shifts.push_back(shift);
    }
    if (shifts.empty()) {
      throw usage_error(
          fmt::format("hrr needs levels of rails that take turns over the positions of a module, as a mesh-rail-cube "
                      "has them, and all positions; these {} ranks hold {} positions and {} levels that do not; use "
                      "blueconnect",
                      shape.workers, cube.positions, cube.levels()));
    }
    return shifts;
  }

  std::string rails_;
};

TANDEM_REGISTER(
    CollectiveAlgorithm, hrr, "hrr",
    "mesh-rail-cube's own: hierarchical over module and rails, levels rotating over the positions",
    [](const Arguments& arguments, const CollectiveAlgorithm::PluginContext&) {
      return std::make_unique<Hrr>(arguments.text("rails"));
    },
    {{"rails", ParameterType::text, "native",
      "exchange on the rails: native (halving, or ring where they are rings or of a radix that is no power of "
      "two), ring, halving or direct"}})

}  // namespace
}  // namespace tandem
