// The kernels' threads, by how many a computation may use: the cores that it holds.
#ifndef QUANTD_SERVER_RPC_EXECUTORS_H_
#define QUANTD_SERVER_RPC_EXECUTORS_H_

#include <memory>
#include <vector>

#include "quantd/executor.h"

namespace quantd::rpc {

// Safe from any thread.
class Executors {
 public:
  explicit Executors(int cores) {
    for (int threads = 1; threads < cores; threads *= 2) Add(threads);
    Add(cores);
  }

  // One that uses at most `cores`, and more than half of that. REQUIRES: cores >= 1.
  const Executor& of(int cores) const {
    size_t index = all_.size() - 1;
    while (all_[index]->threads() > cores) --index;
    return *all_[index];
  }

 private:
  void Add(int threads) { all_.push_back(std::make_unique<Executor>(threads)); }

  std::vector<std::unique_ptr<Executor>> all_;
};

}  // namespace quantd::rpc

#endif  // QUANTD_SERVER_RPC_EXECUTORS_H_
