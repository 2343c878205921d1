#include "sim/ir/op.hpp"

#include <algorithm>

#include "sim/core/error.hpp"

namespace tandem {

RankSet RankSet::range(int first, int count, int stride) {
  RankSet set;
  set.first_ = first;
  set.count_ = count;
  set.stride_ = stride;
  return set;
}

RankSet RankSet::list(std::vector<Rank> ranks) {
  auto list = std::make_shared<List>();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    list->sorted.emplace_back(ranks[i].value, static_cast<std::int32_t>(i));
  }
  std::sort(list->sorted.begin(), list->sorted.end());
  const auto same_rank = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(list->sorted.begin(), list->sorted.end(), same_rank) != list->sorted.end()) {
    throw internal_error("a rank set names a rank twice");
  }
  RankSet set;
  set.count_ = static_cast<std::int32_t>(ranks.size());
  list->ranks = std::move(ranks);
  set.list_ = std::move(list);
  return set;
}

Rank RankSet::at(int index) const {
  if (list_) return list_->ranks[static_cast<std::size_t>(index)];
  return Rank{first_ + index * stride_};
}

int RankSet::index_of(Rank rank) const {
  if (list_) {
    const auto found = std::lower_bound(list_->sorted.begin(), list_->sorted.end(), std::pair{rank.value, -1});
    return found != list_->sorted.end() && found->first == rank.value ? found->second : -1;
  }
  const auto offset = rank.value - first_;
  if (offset < 0 || offset % stride_ != 0 || offset / stride_ >= count_) return -1;
  return offset / stride_;
}

Rank RankMap::of(Rank rank) const {
  switch (kind) {
    case Kind::same:
      return rank;
    case Kind::shift:
      return Rank{rank.value + value};
    case Kind::exchange:
      return Rank{rank.value ^ value};
    case Kind::fixed:
      return Rank{value};
    case Kind::map:
      return table->at(rank.index());
    case Kind::all:
      break;
  }
  throw internal_error("a map to all ranks has no single image");
}

}  // namespace tandem
