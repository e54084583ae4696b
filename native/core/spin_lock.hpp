// A lock for sections of well under a microsecond: who waits spins, since to be put to sleep and
// woken again takes longer than the longest section. Meets std::lock_guard's demands.
#pragma once

#include <atomic>
#include <thread>

namespace hardwood {

class SpinLock {
 public:
  void lock() {
    for (int turn = 0; held_.exchange(true, std::memory_order_acquire);) {
      // Reading alone leaves the cache line with its holder, who may also have lost its processor.
      while (held_.load(std::memory_order_relaxed))
        if (++turn % kTurns == 0) std::this_thread::yield();
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  static constexpr int kTurns = 1000;
  std::atomic<bool> held_ = false;
};

}  // namespace hardwood
