"""A hardwood command that gets Ctrl-C at chosen points of its own run, not at chosen times.

::

    python interrupted_command.py calls 20000 COMMAND ...    at every 20000th call of a function
    python interrupted_command.py function NAME COMMAND ...  in the first call of this function
    python interrupted_command.py lost NAME COMMAND ...      in the first import after that call
    python interrupted_command.py writing COMMAND ...        before its file gets its name
    python interrupted_command.py exit COMMAND ...           in the last functions before the end
    python interrupted_command.py shutdown COMMAND ...       while Python clears its modules

``calls`` forks at each point where there is one thread and no open file: the child gets Ctrl-C, and
the run goes on. It prints one line of JSON per child on stdout: the exit code, and what was on
stderr. The other ways interrupt the run itself.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import tempfile
import threading

from hardwood.cli import main

SECONDS = 120  # after which a child counts as hanging


def interrupt(raise_signal=signal.raise_signal, number=signal.SIGINT):
    raise_signal(number)


def interrupt_child():
    """Fork; the child gets Ctrl-C and goes on, the parent reports how it ended."""
    with tempfile.TemporaryFile() as words:
        child = os.fork()
        if child == 0:
            sys.setprofile(None)
            signal.alarm(SECONDS)
            os.dup2(words.fileno(), 2)
            interrupt()
            return
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        words.seek(0)
        said = words.read().decode()
    print(json.dumps({"code": code, "stderr": said}), file=sys.__stdout__, flush=True)


def at_calls(every):
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        if event == "call":
            count += 1
            if count % every == 0 and threading.active_count() == 1 and not is_writing():
                interrupt_child()

    sys.setprofile(profile)


def is_writing():
    """Whether a child would remove the temporary file of the run."""
    files = sys.modules.get("hardwood.atomic_file")
    return bool(getattr(files, "_open_parts", ()))


def at_function(name):
    def profile(frame, event, argument):
        if event == "call" and frame.f_code.co_qualname == name:
            sys.setprofile(None)
            interrupt()

    sys.setprofile(profile)


def in_import_after(name):
    """Interrupt the callback of a weak reference, from which no exception gets out."""
    has_begun = False

    def profile(frame, event, argument):
        nonlocal has_begun
        if event != "call":
            return
        has_begun = has_begun or frame.f_code.co_qualname == name
        if has_begun and frame.f_code.co_qualname == "_get_module_lock.<locals>.cb":
            sys.setprofile(None)
            interrupt()

    sys.setprofile(profile)


def while_writing():
    replace = os.replace

    def interrupted(*arguments):
        interrupt()
        replace(*arguments)

    os.replace = interrupted


class AtShutdown:
    def __del__(self, interrupt=interrupt):  # global names are gone by then
        interrupt()


if __name__ == "__main__":
    way, *arguments = sys.argv[1:]
    if way == "calls":
        at_calls(int(arguments.pop(0)))
    elif way == "function":
        at_function(arguments.pop(0))
    elif way == "lost":
        in_import_after(arguments.pop(0))
    elif way == "writing":
        while_writing()
    elif way == "exit":
        atexit.register(interrupt)
    elif way == "shutdown":
        sys.at_shutdown = AtShutdown()
    sys.argv[1:] = arguments
    main()
