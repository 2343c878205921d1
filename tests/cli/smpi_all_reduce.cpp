// An MPI program of its own, run by SMPI in smpi_test.py: an all-reduce by hand, of MPI_Sendrecv alone. It shares
// nothing with the product.
//
// Usage: smpi_all_reduce ring|halving-doubling BYTES. Adds BYTES of integers over all ranks, checks every sum, and
// prints the seconds from the first rank's begin to the last one's end. BYTES is a multiple of the ranks' integers.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Part {
  int begin = 0;
  int count = 0;
};

class AllReduce {
 public:
  AllReduce(std::vector<int>& values, int rank, int ranks)
      : values_(values), received_(values.size()), rank_(rank), ranks_(ranks) {}

  // Patarasuk and Yuan, JPDC 2009: parts go round once to be added, and once more complete.
  void ring() {
    const int next = (rank_ + 1) % ranks_;
    const int previous = (rank_ + ranks_ - 1) % ranks_;
    for (int step = 0; step < ranks_ - 1; ++step) {
      exchange(next, part(rank_ - step), previous, part(rank_ - step - 1), true);
    }
    for (int step = 0; step < ranks_ - 1; ++step) {
      exchange(next, part(rank_ + 1 - step), previous, part(rank_ - step), false);
    }
  }

  // Thakur, Rabenseifner and Gropp, IJHPCA 2005: halves to the farthest partner first, and back. Powers of two only.
  void halving_doubling() {
    Part own{0, static_cast<int>(values_.size())};
    for (int distance = ranks_ / 2; distance > 0; distance /= 2) {
      const Part low{own.begin, own.count / 2};
      const Part high{own.begin + low.count, low.count};
      const bool keeps_low = (rank_ & distance) == 0;
      own = keeps_low ? low : high;
      exchange(rank_ ^ distance, keeps_low ? high : low, rank_ ^ distance, own, true);
    }
    for (int distance = 1; distance < ranks_; distance *= 2) {
      const bool is_low = (rank_ & distance) == 0;
      const Part other{is_low ? own.begin + own.count : own.begin - own.count, own.count};
      exchange(rank_ ^ distance, own, rank_ ^ distance, other, false);
      own = {is_low ? own.begin : other.begin, 2 * own.count};
    }
  }

 private:
  [[nodiscard]] Part part(int index) const {
    const int count = static_cast<int>(values_.size()) / ranks_;
    return {(index + 2 * ranks_) % ranks_ * count, count};
  }

  void exchange(int to, Part sent, int from, Part taken, bool adds) {
    int* target = (adds ? received_ : values_).data() + taken.begin;
    MPI_Sendrecv(values_.data() + sent.begin, sent.count, MPI_INT, to, 0, target, taken.count, MPI_INT, from, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = taken.begin; adds && i < taken.begin + taken.count; ++i) values_[i] += received_[i];
  }

  std::vector<int>& values_;
  std::vector<int> received_;
  int rank_;
  int ranks_;
};

int value_of(int rank, std::size_t index) {
  return (rank + 1) * static_cast<int>(index % 1000 + 1);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string algorithm = argc == 3 ? argv[1] : "";
  const int bytes = argc == 3 ? std::atoi(argv[2]) : 0;
  if (bytes <= 0 || bytes % (ranks * static_cast<int>(sizeof(int))) != 0) MPI_Abort(MPI_COMM_WORLD, 2);

  std::vector<int> values(bytes / sizeof(int));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(rank, i);
  AllReduce all_reduce(values, rank, ranks);
  const double begin = MPI_Wtime();
  if (algorithm == "ring") {
    all_reduce.ring();
  } else {
    all_reduce.halving_doubling();
  }
  const double end = MPI_Wtime();

  const int all = ranks * (ranks + 1) / 2 - 1;  // value_of this rank is that of all ranks
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != value_of(all, i)) MPI_Abort(MPI_COMM_WORLD, 3);
  }
  double first = 0;
  double last = 0;
  MPI_Reduce(&begin, &first, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%.17g\n", last - first);
  MPI_Finalize();
  return 0;
}
