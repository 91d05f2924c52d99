// The threads of kernels, by the number of cores that a computation has.
#ifndef QUANTD_SERVER_RPC_EXECUTORS_H_
#define QUANTD_SERVER_RPC_EXECUTORS_H_

#include <memory>
#include <vector>

#include "quantd/executor.h"

namespace quantd::rpc {

// Thread-safe.
class Executors {
 public:
  explicit Executors(int cores) {
    for (int threads = 1; threads < cores; threads *= 2) Add(threads);
    Add(cores);
  }

  // An executor that uses at most `cores`, and more than half of them. REQUIRES: cores >= 1.
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
