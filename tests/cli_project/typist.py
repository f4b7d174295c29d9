"""Runs a command in a pseudo-terminal and types at it.

Usage: typist.py SCRIPT -- COMMAND...   SCRIPT is a JSON list of steps: [expected text, keys to type]. Each step waits
for its text to appear, then for the program to settle, then types; an empty text types at once. Everything that the
program wrote goes to stdout; the exit status is the program's own, 124 when a step's text never came.
"""

import fcntl
import json
import os
import pty
import select
import struct
import sys
import termios
import time

steps = json.loads(sys.argv[1])
command = sys.argv[3:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(command[0], command)

# A program that starts before its terminal has a size would lay out for none.
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
seen = b""
fresh = 0
# Seconds that a step may take, and the program after the last one: more than a busy machine needs.
STEP = 60
timed_out = False


def pump(wait):
    """Reads what is there; False when the program has closed the terminal."""
    global seen
    ready, _, _ = select.select([fd], [], [], wait)
    if not ready:
        return None
    try:
        data = os.read(fd, 65536)
    except OSError:
        return False
    if not data:
        return False
    seen += data
    return True


open_ = True
for expected, keys in steps:
    deadline = time.time() + STEP
    while open_ and expected.encode() not in seen[fresh:]:
        if time.time() > deadline:
            timed_out = True
            break
        open_ = pump(0.1) is not False
    if not open_ or timed_out:
        break
    fresh = seen.index(expected.encode(), fresh) + len(expected)
    # A step that waits for nothing types ahead, before the program can have asked anything.
    while expected and pump(0.15):
        pass
    os.write(fd, keys.encode())
deadline = time.time() + STEP
while open_ and not timed_out:
    if time.time() > deadline:
        timed_out = True
        break
    open_ = pump(0.2) is not False
if timed_out:
    os.kill(pid, 9)
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
sys.exit(124 if timed_out else os.waitstatus_to_exitcode(status))
