#include "sim/engine/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

// A token says what it is for in its top bits, and carries a generation by which a stale one is known.
enum class TokenKind : std::uint64_t { start, stream, transfer, event, tick, collective };
constexpr int kKindShift = 61;

Token make_token(TokenKind kind, std::uint64_t payload) {
  return (static_cast<Token>(kind) << kKindShift) | payload;
}

Token stream_token(Rank rank, StreamId stream, std::uint32_t generation) {
  return make_token(TokenKind::stream,
                    (static_cast<Token>(stream) << 56) | (static_cast<Token>(rank.value) << 32) | generation);
}
constexpr std::int32_t kMaxRanks = 1 << 24;
constexpr std::int32_t kMaxStreams = 1 << 5;

// 29 bits of generation: a slot would have to be reused 500 million times within one latency to confuse two.
constexpr std::uint32_t kTransferGenerations = (1u << 29) - 1;
Token transfer_token(std::int32_t slot, std::uint32_t generation) {
  return make_token(TokenKind::transfer,
                    (static_cast<Token>(generation & kTransferGenerations) << 32) | static_cast<std::uint32_t>(slot));
}

Token collective_token(OpId id) {
  return make_token(TokenKind::collective, static_cast<std::uint32_t>(id));
}

}  // namespace

Executor::Executor(Program& program, std::vector<DeviceId> placement, Seconds start, const Network& network,
                   Backend& backend, ExecutorOptions options, std::vector<Event> events)
    : program_(program),
      placement_(std::move(placement)),
      network_(network),
      backend_(backend),
      options_(std::move(options)),
      events_(std::move(events)) {
  const int ranks = program_.ranks();
  if (ranks < 1 || ranks > kMaxRanks) throw internal_error(fmt::format("a program of {} ranks", ranks));
  if (static_cast<int>(placement_.size()) != ranks) {
    throw internal_error(fmt::format("{} ranks are placed on {} devices", ranks, placement_.size()));
  }
  history_.ranks = ranks;
  history_.start = start.count();
  history_.end = start.count();
  history_.streams = program_.streams();
  if (history_.streams.empty() || static_cast<int>(history_.streams.size()) > kMaxStreams) {
    throw internal_error(fmt::format("a program of {} streams", history_.streams.size()));
  }
  ranks_.resize(static_cast<std::size_t>(ranks));
  for (auto& rank : ranks_) rank.streams.resize(history_.streams.size());
  check_events();
}

void Executor::check_events() const {
  for (const auto& event : events_) {
    const auto fail = [&](const std::string& what) {
      throw input_error(fmt::format("event at {} s: {}", event.date.count(), what));
    };
    if (!(event.date.count() >= 0) || !std::isfinite(event.date.count())) fail("its date is not a time");
    if (event.kind == Event::Kind::rank_failure && (event.rank.value < 0 || event.rank.value >= history_.ranks)) {
      fail(fmt::format("rank {} does not exist; the job has ranks 0 to {}", event.rank.value, history_.ranks - 1));
    }
    if (event.kind != Event::Kind::link_bandwidth) continue;
    if (event.link.value < 0 || event.link.index() >= network_.links().size()) {
      fail(fmt::format("link {} does not exist; the network has {} links", event.link.value, network_.links().size()));
    }
    if (!(event.bandwidth.count() > 0)) {
      fail(fmt::format("a bandwidth of {} B/s; it must be above 0", event.bandwidth.count()));
    }
  }
}

void Executor::start() {
  backend_.at(Seconds(history_.start), *this, make_token(TokenKind::start, 0));
  for (std::size_t i = 0; i < events_.size(); ++i) {
    backend_.at(events_[i].date, *this, make_token(TokenKind::event, i));
  }
}

void Executor::on_timer(Token token) {
  const auto kind = static_cast<TokenKind>(token >> kKindShift);
  switch (kind) {
    case TokenKind::start:
      started_ = true;
      program_.start(*this);
      break;
    case TokenKind::stream: {
      const auto stream = static_cast<StreamId>((token >> 56) & (kMaxStreams - 1));
      const auto rank = static_cast<std::size_t>((token >> 32) & (kMaxRanks - 1));
      auto& state = ranks_[rank].streams[static_cast<std::size_t>(stream)];
      if (state.generation != static_cast<std::uint32_t>(token)) return;
      finish(state.running, history_.ops[static_cast<std::size_t>(state.running)].op.ranks.index_of(
                                Rank{static_cast<std::int32_t>(rank)}));
      break;
    }
    case TokenKind::transfer: {
      const auto slot = static_cast<std::int32_t>(token & 0xffffffffu);
      auto& transfer = transfers_[static_cast<std::size_t>(slot)];
      if ((transfer.generation & kTransferGenerations) != ((token >> 32) & kTransferGenerations)) return;
      if (transfer.phase == Transfer::Phase::latency) {
        start_flow(slot);
      } else {
        received(slot);
      }
      break;
    }
    case TokenKind::collective: {
      const auto id = static_cast<OpId>(token & 0xffffffffu);
      for (int i = 0; i < history_.ops[static_cast<std::size_t>(id)].op.ranks.size(); ++i) finish(id, i);
      count_active(id, -1);
      break;
    }
    case TokenKind::event:
      handle_event(events_[token & 0xffffffffu]);
      break;
    case TokenKind::tick:
      handle_event(ticks_[token & 0xffffffffu]);
      break;
  }
  drain();
}

void Executor::on_flow_done(Token token) {
  flow_arrived(static_cast<std::int32_t>(token & 0xffffffffu));
  drain();
}

// ---------------------------------------------------------------------------------------------- emission

OpId Executor::emit(Op op) {
  check_op(op);
  const auto id = static_cast<OpId>(history_.ops.size());
  OpRecord record;
  record.on.resize(static_cast<std::size_t>(op.ranks.size()));
  record.cause = cause_;
  record.cause_rank = cause_rank_;
  record.caused_by_event = in_event_;
  record.emitted = now().count();
  if (op.cancel_group != kNoCancelGroup) groups_[op.cancel_group].push_back(id);
  record.op = std::move(op);
  history_.ops.push_back(std::move(record));
  states_.emplace_back();
  register_dependencies(id);
  return id;
}

void Executor::check_op(const Op& op) const {
  const auto fail = [&](const std::string& what) {
    throw internal_error(fmt::format("operation '{}': {}", op.name, what));
  };
  if (op.ranks.size() == 0) fail("no rank runs it");
  if (op.stream < 0 || op.stream >= static_cast<StreamId>(history_.streams.size())) fail("unknown stream");
  if (op.kind == Op::Kind::compute || op.kind == Op::Kind::delay) {
    if (!(op.duration.count() >= 0) || !std::isfinite(op.duration.count())) fail("its duration is not a time");
  }
  if (op.kind == Op::Kind::transfer && op.bytes.count() < 0) fail("negative bytes");
  if (op.kind == Op::Kind::collective) {
    const int members = op.members ? static_cast<int>(op.members->size()) : op.ranks.size();
    for (const auto& piece : op.pieces) {
      if (piece.schedule->members() != members) fail("its schedule is for another number of members");
    }
  }
  for (int i = 0; i < op.ranks.size(); ++i) {
    const auto rank = op.ranks.at(i);
    if (rank.value < 0 || rank.value >= history_.ranks) fail(fmt::format("rank {} does not exist", rank.value));
    if (ranks_[rank.index()].dead) fail(fmt::format("rank {} has failed", rank.value));
  }
}

void Executor::register_dependencies(OpId id) {
  const auto index_of = [](std::int32_t i) { return static_cast<std::size_t>(i); };
  auto& record = history_.ops[index_of(id)];
  const auto& op = record.op;
  for (std::size_t d = 0; d < op.waits_for.size(); ++d) {
    const auto& dependency = op.waits_for[d];
    if (dependency.op < 0 || dependency.op >= id) {
      throw internal_error(fmt::format("operation '{}' waits for one that is not emitted yet", op.name));
    }
    states_[index_of(dependency.op)].dependents.push_back({id, static_cast<std::int32_t>(d)});
  }
  for (int i = 0; i < op.ranks.size(); ++i) {
    std::int32_t missing = 0;
    std::int32_t arrivals = 0;
    for (const auto& dependency : op.waits_for) {
      const auto& other = history_.ops[index_of(dependency.op)];
      if (dependency.from.kind == RankMap::Kind::all && op.needed >= 0) {
        arrivals += states_[index_of(dependency.op)].done;
        continue;
      }
      if (dependency.from.kind != RankMap::Kind::all &&
          other.op.ranks.index_of(dependency.from.of(op.ranks.at(i))) < 0) {
        throw internal_error(fmt::format("operation '{}' on rank {} waits for '{}' on rank {}, which does not run it",
                                         op.name, op.ranks.at(i).value, other.op.name,
                                         dependency.from.of(op.ranks.at(i)).value));
      }
      if (satisfied(dependency, op.ranks.at(i))) {
        ++arrivals;
      } else {
        ++missing;
      }
    }
    record.on[index_of(i)].missing = op.needed >= 0 ? std::max(0, op.needed - arrivals) : missing;
  }
  for (int i = 0; i < op.ranks.size(); ++i) {
    const auto stream = op.stream;
    if (history_.streams[index_of(stream)].discipline == StreamSpec::Discipline::in_order) {
      ranks_[op.ranks.at(i).index()].streams[index_of(stream)].queue.push_back(id);
    }
    if (record.on[index_of(i)].missing == 0) become_ready(id, i);
  }
}

bool Executor::satisfied(const Dependency& dependency, Rank rank) const {
  const auto& other = history_.ops[static_cast<std::size_t>(dependency.op)];
  if (dependency.from.kind == RankMap::Kind::all) {
    return states_[static_cast<std::size_t>(dependency.op)].done == other.op.ranks.size();
  }
  const auto index = other.op.ranks.index_of(dependency.from.of(rank));
  return other.on[static_cast<std::size_t>(index)].status == OpStatus::done;
}

void Executor::tick(Seconds date, std::int64_t tag) {
  Event event;
  event.date = date;
  event.tag = tag;
  ticks_.push_back(event);
  backend_.at(date, *this, make_token(TokenKind::tick, ticks_.size() - 1));
}

// ---------------------------------------------------------------------------------------------- dependencies

void Executor::arrive(OpId id, int index) {
  auto& on = history_.ops[static_cast<std::size_t>(id)].on[static_cast<std::size_t>(index)];
  if (on.status != OpStatus::waiting || on.missing == 0) return;
  if (--on.missing == 0) become_ready(id, index);
}

void Executor::become_ready(OpId id, int index) {
  auto& record = history_.ops[static_cast<std::size_t>(id)];
  record.on[static_cast<std::size_t>(index)].status = OpStatus::ready;
  const auto rank = record.op.ranks.at(index);
  const auto stream = record.op.stream;
  if (history_.streams[static_cast<std::size_t>(stream)].discipline != StreamSpec::Discipline::in_order) {
    ranks_[rank.index()].streams[static_cast<std::size_t>(stream)].queue.push_back(id);
  }
  dirty_.emplace_back(rank, stream);
}

void Executor::notify_dependents(OpId id, Rank rank) {
  const auto& state = states_[static_cast<std::size_t>(id)];
  const bool all_done = state.done == history_.ops[static_cast<std::size_t>(id)].op.ranks.size();
  for (std::size_t d = 0; d < state.dependents.size(); ++d) {
    const auto other = state.dependents[d].op;
    const auto dependency = state.dependents[d].dependency;
    const auto& op = history_.ops[static_cast<std::size_t>(other)].op;
    const auto& from = op.waits_for[static_cast<std::size_t>(dependency)].from;
    const auto arrive_at = [&](Rank at) {
      const auto index = op.ranks.index_of(at);
      if (index >= 0) arrive(other, index);
    };
    const auto arrive_everywhere = [&] {
      for (int i = 0; i < op.ranks.size(); ++i) arrive(other, i);
    };
    switch (from.kind) {
      case RankMap::Kind::same:
        arrive_at(rank);
        break;
      case RankMap::Kind::shift:
        arrive_at(Rank{rank.value - from.value});
        break;
      case RankMap::Kind::exchange:
        arrive_at(Rank{rank.value ^ from.value});
        break;
      case RankMap::Kind::fixed:
        if (rank.value == from.value) arrive_everywhere();
        break;
      case RankMap::Kind::all:
        if (all_done || op.needed >= 0) arrive_everywhere();
        break;
      case RankMap::Kind::map:
        for (int i = 0; i < op.ranks.size(); ++i) {
          if (from.of(op.ranks.at(i)) == rank) arrive(other, i);
        }
        break;
    }
  }
}

// ---------------------------------------------------------------------------------------------- streams

void Executor::pump(Rank rank, StreamId stream) {
  auto& state = ranks_[rank.index()].streams[static_cast<std::size_t>(stream)];
  if (state.running >= 0 || ranks_[rank.index()].dead) return;
  const auto on = [&](OpId id) -> OpOnRank& {
    auto& record = history_.ops[static_cast<std::size_t>(id)];
    return record.on[static_cast<std::size_t>(record.op.ranks.index_of(rank))];
  };
  while (!state.queue.empty() && on(state.queue.front()).status == OpStatus::cancelled) {
    // What is behind a cancelled head has waited for the cancellation, or for what still ran then.
    const auto head = state.queue.front();
    state.queue.pop_front();
    on(head).stream_predecessor = state.last;
    if (state.last < 0 || on(head).end > on(state.last).end) state.last = head;
  }
  if (state.queue.empty()) return;
  auto chosen = state.queue.begin();
  if (history_.streams[static_cast<std::size_t>(stream)].discipline == StreamSpec::Discipline::by_priority) {
    std::erase_if(state.queue, [&](OpId id) { return on(id).status == OpStatus::cancelled; });
    // Equal priorities in order of becoming ready: max_element keeps the first of equals.
    chosen = std::max_element(state.queue.begin(), state.queue.end(), [&](OpId a, OpId b) {
      return history_.ops[static_cast<std::size_t>(a)].op.priority <
             history_.ops[static_cast<std::size_t>(b)].op.priority;
    });
  }
  const auto id = *chosen;
  if (on(id).status != OpStatus::ready) return;
  state.queue.erase(chosen);
  on(id).stream_predecessor = state.last;
  state.running = id;
  begin(id, history_.ops[static_cast<std::size_t>(id)].op.ranks.index_of(rank));
}

void Executor::begin(OpId id, int index) {
  auto& record = history_.ops[static_cast<std::size_t>(id)];
  auto& on = record.on[static_cast<std::size_t>(index)];
  on.status = OpStatus::running;
  on.start = now().count();
  const auto rank = record.op.ranks.at(index);
  switch (record.op.kind) {
    case Op::Kind::compute:
    case Op::Kind::delay:
      begin_compute(id, index);
      break;
    case Op::Kind::transfer: {
      const auto receiver = record.op.peer.of(rank);
      if (receiver.value < 0 || receiver.value >= history_.ranks) {
        throw internal_error(fmt::format("operation '{}' on rank {} sends to rank {}, which does not exist",
                                         record.op.name, rank.value, receiver.value));
      }
      set_communicating(rank, 1);
      launch(new_transfer(id, -1, 0, index, 0, rank, receiver, record.op.bytes.count(), false));
      break;
    }
    case Op::Kind::collective:
      set_communicating(rank, 1);
      arrive_at_collective(id, index);
      break;
  }
}

void Executor::begin_compute(OpId id, int index) {
  const auto& op = history_.ops[static_cast<std::size_t>(id)].op;
  const auto rank = op.ranks.at(index);
  auto& stream = ranks_[rank.index()].streams[static_cast<std::size_t>(op.stream)];
  double work = op.duration.count();
  if (op.kind == Op::Kind::compute && !options_.compute_slowdown.empty()) {
    work *= options_.compute_slowdown[rank.index()];
  }
  stream.remaining = work;
  stream.updated = now().count();
  set_compute_timer(rank, op.stream);
}

double Executor::compute_rate(Rank rank) const {
  return ranks_[rank.index()].communicating > 0 ? 1 / options_.overlap_slowdown : 1;
}

void Executor::set_compute_timer(Rank rank, StreamId stream) {
  auto& state = ranks_[rank.index()].streams[static_cast<std::size_t>(stream)];
  const auto kind = history_.ops[static_cast<std::size_t>(state.running)].op.kind;
  const double rate = kind == Op::Kind::compute ? compute_rate(rank) : 1;
  backend_.at(Seconds(state.updated + state.remaining / rate), *this, stream_token(rank, stream, ++state.generation));
}

void Executor::reclock_compute(Rank rank, double old_rate) {
  for (std::size_t s = 0; s < history_.streams.size(); ++s) {
    auto& state = ranks_[rank.index()].streams[s];
    if (state.running < 0) continue;
    if (history_.ops[static_cast<std::size_t>(state.running)].op.kind != Op::Kind::compute) continue;
    const double elapsed = now().count() - state.updated;
    state.remaining = std::max(0.0, state.remaining - elapsed * old_rate);
    state.updated = now().count();
    set_compute_timer(rank, static_cast<StreamId>(s));
  }
}

void Executor::set_communicating(Rank rank, int change) {
  const double old_rate = compute_rate(rank);
  ranks_[rank.index()].communicating += change;
  if (options_.overlap_slowdown != 1 && compute_rate(rank) != old_rate) reclock_compute(rank, old_rate);
}

void Executor::finish(OpId id, int index) {
  completions_.emplace_back(id, index);
}

void Executor::drain() {
  // Programs may emit from within on_done, and completions may come at once: a work list instead of recursion.
  if (draining_) return;
  draining_ = true;
  while (!completions_.empty() || !dirty_.empty()) {
    if (!completions_.empty()) {
      const auto [id, index] = completions_.front();
      completions_.pop_front();
      complete(id, index);
    } else {
      const auto [rank, stream] = dirty_.front();
      dirty_.pop_front();
      pump(rank, stream);
    }
  }
  draining_ = false;
}

void Executor::complete(OpId id, int index) {
  auto& record = history_.ops[static_cast<std::size_t>(id)];
  auto& on = record.on[static_cast<std::size_t>(index)];
  if (on.status != OpStatus::running) return;
  on.status = OpStatus::done;
  on.end = now().count();
  history_.end = std::max(history_.end, on.end);
  ++states_[static_cast<std::size_t>(id)].done;
  const auto rank = record.op.ranks.at(index);
  const auto stream = record.op.stream;
  const auto kind = record.op.kind;
  const bool notify = record.op.notify;
  auto& state = ranks_[rank.index()].streams[static_cast<std::size_t>(stream)];
  state.running = -1;
  state.last = id;
  ++state.generation;
  if (kind == Op::Kind::collective || kind == Op::Kind::transfer) set_communicating(rank, -1);
  dirty_.emplace_back(rank, stream);
  notify_dependents(id, rank);
  if (states_[static_cast<std::size_t>(id)].done == record.op.ranks.size()) {
    states_[static_cast<std::size_t>(id)].collective.reset();
  }
  if (notify) {
    cause_ = id;
    cause_rank_ = rank;
    program_.on_done(id, rank, now(), *this);
    cause_ = -1;
  }
}

// ---------------------------------------------------------------------------------------------- cancellation, events

void Executor::cancel(CancelGroup group) {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return;
  for (const auto id : found->second) {
    for (int i = 0; i < history_.ops[static_cast<std::size_t>(id)].op.ranks.size(); ++i) stop_on_rank(id, i);
    for (std::size_t slot = 0; slot < transfers_.size(); ++slot) {
      if (transfers_[slot].phase != Transfer::Phase::free && transfers_[slot].op == id) {
        kill_transfer(static_cast<std::int32_t>(slot));
      }
    }
    if (options_.collectives == nullptr) continue;
    if (const auto not_sent = options_.collectives->cancel(*this, collective_token(id))) {
      count_active(id, -1);
      bytes_injected_ -= *not_sent;
    }
  }
}

void Executor::stop_on_rank(OpId id, int index) {
  auto& record = history_.ops[static_cast<std::size_t>(id)];
  auto& on = record.on[static_cast<std::size_t>(index)];
  if (on.status == OpStatus::done || on.status == OpStatus::cancelled) return;
  const bool was_running = on.status == OpStatus::running;
  on.status = OpStatus::cancelled;
  on.end = now().count();
  const auto rank = record.op.ranks.at(index);
  if (!was_running) {
    on.start = on.end;
    dirty_.emplace_back(rank, record.op.stream);  // it may have been the head that others wait behind
    return;
  }
  history_.end = std::max(history_.end, on.end);
  auto& stream = ranks_[rank.index()].streams[static_cast<std::size_t>(record.op.stream)];
  stream.running = -1;
  stream.last = id;
  ++stream.generation;
  if (record.op.kind == Op::Kind::collective || record.op.kind == Op::Kind::transfer) set_communicating(rank, -1);
  dirty_.emplace_back(rank, record.op.stream);
}

void Executor::fail_rank(Rank rank) {
  for (std::size_t id = 0; id < history_.ops.size(); ++id) {
    const auto index = history_.ops[id].op.ranks.index_of(rank);
    if (index >= 0) stop_on_rank(static_cast<OpId>(id), index);
  }
  for (std::size_t slot = 0; slot < transfers_.size(); ++slot) {
    const auto& transfer = transfers_[slot];
    if (transfer.phase != Transfer::Phase::free && (transfer.sender == rank || transfer.receiver == rank)) {
      kill_transfer(static_cast<std::int32_t>(slot));
    }
  }
  ranks_[rank.index()].dead = true;
}

void Executor::handle_event(const Event& event) {
  if (event.kind == Event::Kind::rank_failure) fail_rank(event.rank);
  if (event.kind == Event::Kind::link_bandwidth) backend_.set_bandwidth(event.link, event.bandwidth);
  const Event copy = event;  // the program may ask for ticks, which moves their list
  in_event_ = true;
  program_.on_event(copy, *this);
  in_event_ = false;
}

// ---------------------------------------------------------------------------------------------- collectives

void Executor::arrive_at_collective(OpId id, int index) {
  const auto& op = history_.ops[static_cast<std::size_t>(id)].op;
  if (!options_.start_together && !op.members) {
    enter_collective(id, index);
    return;
  }
  if (++states_[static_cast<std::size_t>(id)].arrived < op.ranks.size()) return;
  if (options_.collectives != nullptr) {
    count_active(id, 1);
    bytes_injected_ += options_.collectives->start(op, placement_, options_, *this, collective_token(id));
    return;
  }
  const int members = op.members ? static_cast<int>(op.members->size()) : op.ranks.size();
  for (int m = 0; m < members; ++m) enter_collective(id, m);
}

// A member is done with the collective.
void Executor::member_done(OpId id, int member) {
  const auto& op = history_.ops[static_cast<std::size_t>(id)].op;
  if (!op.members) {
    finish(id, member);
  } else if (--states_[static_cast<std::size_t>(id)].collective->members_left == 0) {
    for (int i = 0; i < op.ranks.size(); ++i) finish(id, i);
  }
}

void Executor::enter_collective(OpId id, int member) {
  auto& record = history_.ops[static_cast<std::size_t>(id)];
  auto& holder = states_[static_cast<std::size_t>(id)].collective;
  const auto& pieces = record.op.pieces;
  if (!holder) {
    holder = std::make_unique<CollectiveState>();
    const auto members =
        record.op.members ? record.op.members->size() : static_cast<std::size_t>(record.op.ranks.size());
    holder->members_left = static_cast<int>(members);
    if (record.op.members) holder->receive_busy_until.assign(members, 0);
    holder->entered.assign(members, 0);
    holder->pieces_left.assign(members, static_cast<std::int32_t>(pieces.size()));
    holder->held.resize(members);
    holder->pieces.assign(pieces.size(), std::vector<PieceMember>(members));
    std::map<std::int32_t, int> chunks;
    for (const auto& piece : pieces) {
      ++chunks[piece.channel];
      holder->stages_per_channel = std::max(holder->stages_per_channel, piece.schedule->stages());
    }
    holder->pipelined.assign(chunks.empty() ? 0 : static_cast<std::size_t>(chunks.rbegin()->first) + 1, 0);
    for (const auto& [channel, count] : chunks) holder->pipelined[static_cast<std::size_t>(channel)] = count > 1;
  }
  auto& state = *holder;
  state.entered[static_cast<std::size_t>(member)] = 1;
  auto held = std::move(state.held[static_cast<std::size_t>(member)]);
  state.held[static_cast<std::size_t>(member)].clear();
  for (const auto slot : held) {
    // A failed sender's message is gone from its slot by now.
    const auto& transfer = transfers_[static_cast<std::size_t>(slot)];
    if (transfer.phase == Transfer::Phase::held && transfer.op == id && transfer.to == member) launch(slot);
  }
  if (pieces.empty()) member_done(id, member);
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    if (pieces[p].schedule->steps() == 0) {
      if (--state.pieces_left[static_cast<std::size_t>(member)] == 0) member_done(id, member);
    } else {
      request_step(id, static_cast<int>(p), member, 0);
    }
  }
}

std::int64_t Executor::stage_key(const CollectiveState& state, const CollectivePiece& piece, int step,
                                 int member) const {
  const std::int64_t stage =
      static_cast<std::int64_t>(piece.channel) * state.stages_per_channel + piece.schedule->stage(step);
  return stage * static_cast<std::int64_t>(state.entered.size()) + member;
}

// Begins a step as soon as the member's stage is free of earlier chunks.
void Executor::request_step(OpId id, int piece, int member, int step) {
  const auto& op = history_.ops[static_cast<std::size_t>(id)].op;
  auto& state = *states_[static_cast<std::size_t>(id)].collective;
  const auto& description = op.pieces[static_cast<std::size_t>(piece)];
  const bool enters_stage = step == 0 || description.schedule->stage(step) != description.schedule->stage(step - 1);
  if (state.pipelined[static_cast<std::size_t>(description.channel)] && enters_stage) {
    auto& queue = state.stages[stage_key(state, description, step, member)];
    if (queue.busy >= 0) {
      queue.waiting.push_back(piece);
      return;
    }
    queue.busy = piece;
  }
  begin_step(id, piece, member, step);
}

void Executor::begin_step(OpId id, int piece, int member, int step) {
  const auto& op = history_.ops[static_cast<std::size_t>(id)].op;
  auto& state = *states_[static_cast<std::size_t>(id)].collective;
  const auto& schedule = *op.pieces[static_cast<std::size_t>(piece)].schedule;
  auto& progress = state.pieces[static_cast<std::size_t>(piece)][static_cast<std::size_t>(member)];
  progress.step = step;
  schedule.sends(step, member, sends_);
  progress.outstanding = static_cast<std::int32_t>(sends_.size()) + schedule.receives(step, member);
  const auto early = std::find_if(progress.early.begin(), progress.early.end(),
                                  [&](const auto& entry) { return entry.first == step; });
  if (early != progress.early.end()) {
    progress.outstanding -= early->second;
    progress.early.erase(early);
  }
  const bool idle_step = progress.outstanding == 0;
  for (const auto& send : sends_) {
    const auto sender = op.members ? Rank{member} : op.ranks.at(member);
    const auto receiver = op.members ? Rank{send.to} : op.ranks.at(send.to);
    const auto slot = new_transfer(id, piece, step, member, send.to, sender, receiver, send.range.size(), send.reduce);
    transfers_[static_cast<std::size_t>(slot)].cable = send.cable;
    if (schedule.eager() || state.entered[static_cast<std::size_t>(send.to)]) {
      launch(slot);
    } else {
      transfers_[static_cast<std::size_t>(slot)].phase = Transfer::Phase::held;
      state.held[static_cast<std::size_t>(send.to)].push_back(slot);
    }
  }
  if (idle_step) advance(id, piece, member);
}

void Executor::step_message_done(OpId id, int piece, int member, int step, bool is_received) {
  const auto& holder = states_[static_cast<std::size_t>(id)].collective;
  if (!holder) return;  // a rank that finished early may still see its last messages to others end
  auto& progress = holder->pieces[static_cast<std::size_t>(piece)][static_cast<std::size_t>(member)];
  if (is_received && progress.step != step) {
    const auto early = std::find_if(progress.early.begin(), progress.early.end(),
                                    [&](const auto& entry) { return entry.first == step; });
    if (early == progress.early.end()) {
      progress.early.emplace_back(step, 1);
    } else {
      ++early->second;
    }
    return;
  }
  if (--progress.outstanding == 0) advance(id, piece, member);
}

void Executor::advance(OpId id, int piece, int member) {
  auto& state = *states_[static_cast<std::size_t>(id)].collective;
  const auto& op = history_.ops[static_cast<std::size_t>(id)].op;
  const auto& description = op.pieces[static_cast<std::size_t>(piece)];
  auto& progress = state.pieces[static_cast<std::size_t>(piece)][static_cast<std::size_t>(member)];
  const int next = progress.step + 1;
  const bool last = next == description.schedule->steps();
  const bool leaves_stage = last || description.schedule->stage(next) != description.schedule->stage(progress.step);
  if (state.pipelined[static_cast<std::size_t>(description.channel)] && leaves_stage) {
    release_stage(id, piece, member, progress.step);
  }
  if (!last) {
    request_step(id, piece, member, next);
  } else if (--state.pieces_left[static_cast<std::size_t>(member)] == 0) {
    member_done(id, member);
  }
}

void Executor::release_stage(OpId id, int piece, int member, int step) {
  auto& state = *states_[static_cast<std::size_t>(id)].collective;
  const auto& op = history_.ops[static_cast<std::size_t>(id)].op;
  auto& queue = state.stages[stage_key(state, op.pieces[static_cast<std::size_t>(piece)], step, member)];
  queue.busy = -1;
  if (queue.waiting.empty()) return;
  const auto next = queue.waiting.front();
  queue.waiting.pop_front();
  queue.busy = next;
  const auto& waiting = state.pieces[static_cast<std::size_t>(next)][static_cast<std::size_t>(member)];
  begin_step(id, next, member, waiting.step + 1);
}

// ---------------------------------------------------------------------------------------------- transfers

std::int32_t Executor::new_transfer(OpId id, int piece, int step, int from, int to, Rank sender, Rank receiver,
                                    std::int64_t bytes, bool reduce) {
  std::int32_t slot = 0;
  if (free_transfers_.empty()) {
    slot = static_cast<std::int32_t>(transfers_.size());
    transfers_.emplace_back();
  } else {
    slot = free_transfers_.back();
    free_transfers_.pop_back();
  }
  auto& transfer = transfers_[static_cast<std::size_t>(slot)];
  transfer.op = id;
  transfer.piece = piece;
  transfer.step = step;
  transfer.from = from;
  transfer.to = to;
  transfer.sender = sender;
  transfer.receiver = receiver;
  transfer.bytes = bytes;
  transfer.reduce = reduce;
  transfer.cable = LinkId{};
  transfer.flow = -1;
  return slot;
}

DeviceId Executor::device_of(const Op& op, Rank rank) const {
  return op.members ? (*op.members)[rank.index()] : placement_[rank.index()];
}

double& Executor::receive_busy_until(const Transfer& transfer) {
  if (!history_.ops[static_cast<std::size_t>(transfer.op)].op.members) {
    return ranks_[transfer.receiver.index()].receive_busy_until;
  }
  return states_[static_cast<std::size_t>(transfer.op)].collective->receive_busy_until[transfer.receiver.index()];
}

void Executor::route(const Transfer& transfer) {
  if (transfer.cable.value >= 0) {
    path_.assign(1, transfer.cable);
    return;
  }
  const auto& op = history_.ops[static_cast<std::size_t>(transfer.op)].op;
  const auto from = device_of(op, transfer.sender);
  const auto to = device_of(op, transfer.receiver);
  const auto channel = transfer.piece < 0 ? 0 : op.pieces[static_cast<std::size_t>(transfer.piece)].channel;
  network_.route(from, to, flow_hash(from, to, channel), path_);
}

// Waits for the latency outside of the flow: SimGrid's CM02 would give flows of higher latency a smaller share.
void Executor::launch(std::int32_t slot) {
  auto& transfer = transfers_[static_cast<std::size_t>(slot)];
  transfer.phase = Transfer::Phase::latency;
  count_active(transfer.op, 1);
  const auto& op = history_.ops[static_cast<std::size_t>(transfer.op)].op;
  double delay = is_switch(op, transfer.sender) ? 0 : options_.step_overhead.count();  // of software
  if (options_.wait_for_latency) {
    route(transfer);
    delay += network_.route_latency(path_).count() * options_.latency_factor;
  }
  // Only a real flow starts here and now: whatever ends at once goes through a timer, so that a step is never
  // advanced while its messages are still being sent.
  if (transfer.piece >= 0)
    delay *= op.pieces[static_cast<std::size_t>(transfer.piece)].schedule->repetitions(transfer.step);
  const bool at_once = transfer.bytes == 0 || device_of(op, transfer.sender) == device_of(op, transfer.receiver);
  if (delay > 0 || at_once) {
    backend_.at(now() + Seconds(delay), *this, transfer_token(slot, transfer.generation));
  } else {
    start_flow(slot);
  }
}

void Executor::start_flow(std::int32_t slot) {
  auto& transfer = transfers_[static_cast<std::size_t>(slot)];
  route(transfer);
  transfer.phase = Transfer::Phase::flowing;
  ++flows_;
  bytes_injected_ += transfer.bytes;
  if (transfer.bytes == 0 || path_.empty()) {
    // Ranks on one device share its memory; their messages cost what the options charge, and no link.
    flow_arrived(slot);
    return;
  }
  const auto& op = history_.ops[static_cast<std::size_t>(transfer.op)].op;
  transfer.flow =
      backend_.start_flow(device_of(op, transfer.sender), device_of(op, transfer.receiver), path_,
                          Bytes(transfer.bytes), *this, static_cast<Token>(static_cast<std::uint32_t>(slot)));
}

void Executor::flow_arrived(std::int32_t slot) {
  auto& transfer = transfers_[static_cast<std::size_t>(slot)];
  transfer.flow = -1;
  transfer.phase = Transfer::Phase::receiving;
  const auto copy = transfer;  // advancing the sender may grow the pool
  // Switches add and store at line rate.
  const double rate = is_switch(history_.ops[static_cast<std::size_t>(transfer.op)].op, transfer.receiver) ? 0
                      : transfer.reduce ? options_.reduce_rate.count()
                                        : options_.copy_rate.count();
  if (rate > 0 && transfer.bytes > 0) {
    auto& busy_until = receive_busy_until(transfer);
    busy_until = std::max(busy_until, now().count()) + static_cast<double>(transfer.bytes) / rate;
    backend_.at(Seconds(busy_until), *this, transfer_token(slot, transfer.generation));
  }
  if (copy.piece >= 0) step_message_done(copy.op, copy.piece, copy.from, copy.step, false);
  if (!(rate > 0 && copy.bytes > 0)) received(slot);
}

void Executor::received(std::int32_t slot) {
  const auto transfer = transfers_[static_cast<std::size_t>(slot)];
  auto& pooled = transfers_[static_cast<std::size_t>(slot)];
  pooled.phase = Transfer::Phase::free;
  ++pooled.generation;
  free_transfers_.push_back(slot);
  if (transfer.piece >= 0) {
    step_message_done(transfer.op, transfer.piece, transfer.to, transfer.step, true);
  } else {
    finish(transfer.op, transfer.from);
  }
  // After what it released, so that a collective whose next step starts at once stays active without a gap.
  count_active(transfer.op, -1);
}

void Executor::kill_transfer(std::int32_t slot) {
  auto& transfer = transfers_[static_cast<std::size_t>(slot)];
  if (transfer.flow >= 0) backend_.cancel_flow(transfer.flow);
  if (transfer.phase != Transfer::Phase::held) count_active(transfer.op, -1);
  transfer.phase = Transfer::Phase::free;
  ++transfer.generation;
  free_transfers_.push_back(slot);
}

void Executor::count_active(OpId id, int change) {
  auto& count = states_[static_cast<std::size_t>(id)].transfers_active;
  auto& active = history_.ops[static_cast<std::size_t>(id)].active;
  const double date = now().count();
  if (count == 0) {
    // Steps that follow each other at one date are one stretch of activity.
    if (active.empty() || active.back().end != date) active.push_back({date, date});
  }
  count += change;
  if (count == 0) active.back().end = date;
}

// ---------------------------------------------------------------------------------------------- completeness

std::string Executor::describe(OpId id, int index) const {
  const auto& record = history_.ops[static_cast<std::size_t>(id)];
  const auto rank = record.op.ranks.at(index);
  const auto& on = record.on[static_cast<std::size_t>(index)];
  std::string text = fmt::format("'{}' on rank {}", record.op.name, rank.value);
  if (on.status == OpStatus::running) return text + " has begun and never ended";
  if (on.status == OpStatus::ready) return text + " waits for its stream";
  for (const auto& dependency : record.op.waits_for) {
    if (!satisfied(dependency, rank)) {
      return text + fmt::format(" waits for '{}'", history_.ops[static_cast<std::size_t>(dependency.op)].op.name);
    }
  }
  return text + " was never released";
}

void Executor::check_complete() const {
  if (!started_) throw model_error("the run did not complete: the program never started");
  std::int64_t unfinished = 0;
  std::string first;
  for (std::size_t id = 0; id < history_.ops.size(); ++id) {
    const auto& record = history_.ops[id];
    for (std::size_t i = 0; i < record.on.size(); ++i) {
      if (record.on[i].status == OpStatus::done || record.on[i].status == OpStatus::cancelled) continue;
      if (unfinished++ == 0) first = describe(static_cast<OpId>(id), static_cast<int>(i));
    }
  }
  if (unfinished > 0) {
    throw model_error(
        fmt::format("the run did not complete: {} operation(s) never finished; the first: {}", unfinished, first));
  }
}

}  // namespace tandem
