// A lock for sections of well under a microsecond: a waiting thread spins, because sleeping and
// waking take longer than the longest section. Works with std::lock_guard.
#pragma once

#include <atomic>
#include <thread>

namespace hardwood {

class SpinLock {
 public:
  void lock() {
    for (int turn = 0; held_.exchange(true, std::memory_order_acquire);) {
      // Reading leaves the cache line with the holder of the lock, which the system may have
      // suspended.
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
