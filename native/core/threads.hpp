// Independent tasks over a few threads. Which thread runs a task never changes its result.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace hardwood {

// Number of threads that a number of multiplications is worth: starting a thread has a cost.
inline int threads_for(double work, int n_threads) {
  constexpr double kWorthThreads = 2e6;
  return work < kWorthThreads ? 1 : n_threads;
}

// Runs task(0), ..., task(n_tasks - 1); the first exception is rethrown once all have ended. If the
// system refuses to start a thread, the threads that were started do the work.
template <class Task>
void parallel_for(int n_tasks, int n_threads, Task&& task) {
  const int n_workers = std::min(n_tasks, n_threads);
  if (n_workers <= 1) {
    for (int i = 0; i < n_tasks; ++i) task(i);
    return;
  }
  std::atomic<int> next{0};
  std::exception_ptr error;
  std::mutex error_mutex;
  auto work = [&] {
    for (int i = next++; i < n_tasks; i = next++) {
      try {
        task(i);
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    workers.reserve(n_workers);
    try {
      for (int t = 1; t < n_workers; ++t) workers.emplace_back(work);
    } catch (const std::system_error&) {
    }
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace hardwood
