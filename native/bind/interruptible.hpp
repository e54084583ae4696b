// Runs work on another thread while this one handles signals.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "bind/bind.hpp"

namespace hardwood {

// Runs work() on a thread of its own, with the GIL released. Ctrl-C calls on_interrupt() and lets
// the work end by itself; an error raised by any other signal handler does the same and is then
// passed on. on_look() is called every 50 ms, without the GIL.
template <class Work, class OnInterrupt, class OnLook = void (*)()>
void run_interruptible(Work&& work, OnInterrupt&& on_interrupt, OnLook&& on_look = [] {}) {
  using namespace std::chrono_literals;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  std::exception_ptr error, handler_error;
  const nb::gil_scoped_release release;
  std::jthread worker([&] {
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    done = true;
    ended.notify_all();
  });
  std::unique_lock lock(mutex);
  while (!ended.wait_for(lock, 50ms, [&] { return done; })) {
    lock.unlock();
    on_look();
    {
      const nb::gil_scoped_acquire acquire;
      if (PyErr_CheckSignals() != 0) {
        if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
          PyErr_Clear();
        else if (!handler_error)
          handler_error = std::make_exception_ptr(nb::python_error());
        on_interrupt();
      }
    }
    lock.lock();
  }
  lock.unlock();
  worker.join();
  if (handler_error) std::rethrow_exception(handler_error);
  if (error) std::rethrow_exception(error);
}

// The same for work(stop) whose partial result is useless: Ctrl-C raises KeyboardInterrupt.
template <class Work>
void run_whole(Work&& work) {
  std::atomic<bool> stop{false};
  run_interruptible([&] { work(stop); }, [&] { stop = true; });
  if (!stop) return;
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nb::python_error();
}

}  // namespace hardwood
