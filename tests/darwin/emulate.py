#!/usr/bin/env python3
"""Runs the machine code of waft for macOS in the Unicorn emulator, for x64 and arm64.

In: the JSON of dump_code.ts on standard input. Out: one line per check; a failed check ends the program. What is
checked: the fault handler on signal frames laid out as xnu's headers say (landing, polls, chaining to the previous
handlers), threads that start in the stub `call` and have no signal stack, the watchdog with the functions of the C library that it calls, the call of C functions with arm64's place
for variadic arguments and with errno, and the code in front of entry points that bsearch calls; and that no instruction of
them was left out.

Layouts: xnu bsd/sys/signal.h (siginfo), bsd/sys/_types/_ucontext.h, bsd/{i386,arm}/_mcontext.h,
osfmk/mach/{i386,arm}/_structs.h.
"""
import json
import struct
import sys
from ctypes import Structure, c_int, c_uint, c_uint16, c_uint32, c_uint64, sizeof

from unicorn import UC_ARCH_ARM64, UC_ARCH_X86, UC_HOOK_CODE, UC_HOOK_MEM_WRITE, UC_MODE_64, UC_MODE_ARM, Uc
from unicorn import arm64_const as a64
from unicorn import x86_const as x86

u64 = c_uint64


class SigInfo(Structure):
    _fields_ = [("signo", c_int), ("errno", c_int), ("code", c_int), ("pid", c_int), ("uid", c_uint),
                ("status", c_int), ("addr", u64), ("value", u64), ("band", u64), ("pad", u64 * 7)]


class Stack(Structure):
    _fields_ = [("sp", u64), ("size", u64), ("flags", c_int)]


class UContext(Structure):
    _fields_ = [("onstack", c_int), ("sigmask", c_uint32), ("stack", Stack), ("link", u64), ("mcsize", u64),
                ("mcontext", u64)]


class X64State(Structure):
    _fields_ = [("trapno", c_uint16), ("cpu", c_uint16), ("err", c_uint32), ("faultvaddr", u64)] + [
        (r, u64) for r in "rax rbx rcx rdx rdi rsi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip rflags cs fs gs".split()]


class ArmState(Structure):
    _fields_ = [("far", u64), ("esr", c_uint32), ("exception", c_uint32)] + [(f"x{k}", u64) for k in range(29)] + [
        (r, u64) for r in "fp lr sp pc".split()] + [("cpsr", c_uint32), ("flags", c_uint32)]


DATA = json.load(sys.stdin)
CODE, LAYOUTS = DATA["machines"], DATA["layouts"]
WATCH, THREAD, CONTEXT = LAYOUTS["WATCH"], LAYOUTS["THREAD"], LAYOUTS["CONTEXT"]
FAULT_WORDS, OLD_HANDLERS = LAYOUTS["FAULT_WORDS"], LAYOUTS["OLD_HANDLERS"]
SIGSEGV, SIGBUS = DATA["signals"]["SIGSEGV"], DATA["signals"]["SIGBUS"]

# The emulated address space: code, data, a stack, and a page each word of which is a function of the C library.
TEXT, STATE, STACK, LIBRARY, END = 0x10000000, 0x20000000, 0x30000000, 0x40000000, 0x50000000
TOP = STACK + 0xf000
# The bytes of each section of code that have run, by processor and name.
COVERED = {}
INTEGERS = {
    "x64": [x86.UC_X86_REG_RDI, x86.UC_X86_REG_RSI, x86.UC_X86_REG_RDX, x86.UC_X86_REG_RCX, x86.UC_X86_REG_R8,
            x86.UC_X86_REG_R9],
    "arm64": [a64.UC_ARM64_REG_X0 + k for k in range(8)],
}
SP = {"x64": x86.UC_X86_REG_RSP, "arm64": a64.UC_ARM64_REG_SP}
PC = {"x64": x86.UC_X86_REG_RIP, "arm64": a64.UC_ARM64_REG_PC}
RESULT = {"x64": x86.UC_X86_REG_RAX, "arm64": a64.UC_ARM64_REG_X0}
SAVED = {
    "x64": [x86.UC_X86_REG_RBX, x86.UC_X86_REG_RBP, x86.UC_X86_REG_R12, x86.UC_X86_REG_R13, x86.UC_X86_REG_R14,
            x86.UC_X86_REG_R15],
    "arm64": [a64.UC_ARM64_REG_X19 + k for k in range(10)] + [a64.UC_ARM64_REG_X29],
}


class Machine:
    """A processor with code at TEXT; calls of addresses in LIBRARY run functions of Python."""

    def __init__(self, arch, text, section, base=0):
        """The text of a section of waft's code is at `base`."""
        self.arch = arch
        self.covered = COVERED.setdefault((arch, section), set())
        self.base = TEXT + base
        self.uc = Uc(UC_ARCH_X86, UC_MODE_64) if arch == "x64" else Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        for at in (TEXT, STATE, STACK, LIBRARY, END):
            self.uc.mem_map(at, 0x10000)
        self.uc.mem_write(TEXT, text)
        self.functions = []
        self.stopped = False
        self.uc.hook_add(UC_HOOK_CODE, self._hook, None, LIBRARY, LIBRARY + 0xffff)
        self.uc.hook_add(UC_HOOK_CODE, self._cover, None, TEXT, TEXT + 0xffff)
        if arch == "arm64":
            self.uc.reg_write(a64.UC_ARM64_REG_CPACR_EL1, 3 << 20)  # floating-point registers

    def _cover(self, _uc, address, size, _data):
        self.covered.update(range(address - self.base, address - self.base + size))

    def function(self, act):
        """The address of a function that `act(machine, arguments)` implements."""
        self.functions.append(act)
        at = LIBRARY + 16 * (len(self.functions) - 1)
        self.uc.mem_write(at, b"\xc3" if self.arch == "x64" else struct.pack("<I", 0xd65f03c0))  # ret
        return at

    def _hook(self, uc, address, _size, _data):
        sp = uc.reg_read(SP[self.arch])
        assert sp % 16 == (8 if self.arch == "x64" else 0), f"{self.arch}: the stack is not aligned at a call"
        arguments = [uc.reg_read(r) for r in INTEGERS[self.arch]]
        # The callee may change every register that the caller does not keep.
        result = self.functions[(address - LIBRARY) // 16](self, arguments)
        if self.stopped:
            uc.emu_stop()
            return
        for register in INTEGERS[self.arch][1:]:
            uc.reg_write(register, 0xdeadbeefdeadbeef)
        if self.arch == "x64":
            for register in (x86.UC_X86_REG_R10, x86.UC_X86_REG_R11, x86.UC_X86_REG_RDI):
                uc.reg_write(register, 0xdeadbeefdeadbeef)
        else:
            for register in range(a64.UC_ARM64_REG_X8, a64.UC_ARM64_REG_X18 + 1):
                uc.reg_write(register, 0xdeadbeefdeadbeef)
        uc.reg_write(RESULT[self.arch], (result or 0) & 0xffffffffffffffff)

    def word(self, at):
        return struct.unpack("<Q", self.uc.mem_read(at, 8))[0]

    def put(self, at, *words):
        for k, word in enumerate(words):
            self.uc.mem_write(at + 8 * k, struct.pack("<Q", word & 0xffffffffffffffff))

    def run(self, offset, *arguments):
        """Calls the code at an offset like C; checks that it keeps the registers that C functions keep."""
        sp = TOP
        if self.arch == "x64":
            sp -= 8
            self.put(sp, END)
        else:
            self.uc.reg_write(a64.UC_ARM64_REG_X30, END)
        self.uc.reg_write(SP[self.arch], sp)
        for k, register in enumerate(SAVED[self.arch]):
            self.uc.reg_write(register, 0x5a00 + k)
        for register, value in zip(INTEGERS[self.arch], arguments):
            self.uc.reg_write(register, value)
        self.stopped = False
        self.uc.emu_start(TEXT + offset, END, count=10000)
        if self.stopped:
            return None
        assert self.uc.reg_read(PC[self.arch]) == END, f"{self.arch}: the code did not return"
        assert self.uc.reg_read(SP[self.arch]) == TOP, f"{self.arch}: the stack pointer is lost"
        for k, register in enumerate(SAVED[self.arch]):
            assert self.uc.reg_read(register) == 0x5a00 + k, f"{self.arch}: a saved register is lost"
        return self.uc.reg_read(RESULT[self.arch])


def check(arch, what, *conditions):
    for k, condition in enumerate(conditions):
        assert condition, f"{arch}: {what}: condition {k}"
    print(f"{arch}: {what}")


# --- the fault handler

GUEST = 0x51000
# The link register of arm64's guest code.
LINK = 0x1234


def stub_machine(arch, old):
    """A machine with the process stubs in the text, whose whole range is guest code; `old`: the previous handlers."""
    stubs = CODE[arch]["stubs"]
    text = bytearray.fromhex(stubs["bytes"])
    words = {"START": TEXT, "END": TEXT + 0x10000, "LANDING": TEXT + 0x4000 + stubs["faultLanding"],
             "OLD_HANDLERS": old}
    for name, value in words.items():
        struct.pack_into("<Q", text, stubs["faultWords"] + FAULT_WORDS[name], value)
    machine = Machine(arch, b"", "handler", 0x4000)
    machine.uc.mem_write(TEXT + 0x4000, bytes(text))
    return machine


def fault(arch, signal, pc, address, sp=GUEST, lowest=1 << 40):
    """Runs the handler on a frame of guest code whose stack ends at `lowest`; by default nothing fits there. Returns the
    program counter, the saved registers, the words of the thread, the old handlers that ran, and the machine."""
    stubs = CODE[arch]["stubs"]
    taken = []
    context, thread, old, frame = STATE, STATE + 0x1000, STATE + 0x3000, STATE + 0x4000
    machine = stub_machine(arch, old)
    olds = [machine.function(lambda m, _a, k=k: taken.append(k)) for k in range(3)]
    for k, name in enumerate(("SEGV", "BUS", "FPE")):
        machine.put(old + OLD_HANDLERS[name], olds[k])
    machine.put(context + CONTEXT["THREAD"], thread)
    state = X64State() if arch == "x64" else ArmState()
    if arch == "x64":
        state.rip, state.rsp, state.r15 = pc, sp, context
    else:
        state.pc, state.sp, state.x28, state.lr = pc, sp, context, LINK
    machine.uc.mem_write(frame, bytes(SigInfo(signo=signal, addr=address)))
    machine.uc.mem_write(frame + 0x800, bytes(UContext(mcsize=sizeof(state), mcontext=frame + 0x1000)))
    machine.uc.mem_write(frame + 0x1000, bytes(state))
    machine.put(thread + THREAD["STACK_LOW"], lowest)
    machine.run(0x4000 + stubs["faultHandler"], signal, frame, frame + 0x800)
    after = type(state).from_buffer_copy(machine.uc.mem_read(frame + 0x1000, sizeof(state)))
    noted = {name: machine.word(thread + THREAD[name]) for name in ("TRAP_PC", "TRAP_SP", "FAULT_ADDRESS")}
    return (after.rip if arch == "x64" else after.pc), after, noted, taken, machine


def check_faults(arch):
    landing = TEXT + 0x4000 + CODE[arch]["stubs"]["faultLanding"]
    for signal in (SIGBUS, SIGSEGV):
        pc, after, noted, taken, _ = fault(arch, signal, TEXT + 0x8000, 0x123456789000)
        check(arch, f"signal {signal} in guest code continues at the landing", pc == landing, taken == [],
              noted["TRAP_PC"] == TEXT + 0x8000, noted["FAULT_ADDRESS"] == 0x123456789000,
              noted["TRAP_SP"] == (GUEST if arch == "x64" else GUEST - 16), arch == "x64" or after.flags == 1)
    sp = STACK + 0x8000
    pc, _, noted, _, machine = fault(arch, SIGBUS, TEXT + 0x8000, 0x123456789000, sp, STACK)
    check(arch, "with room on the guest's stack, arm64's return address goes there", pc == landing,
          arch == "x64" or (noted["TRAP_SP"] == sp - 16 and machine.word(sp - 8) == LINK))
    pc, _, _, taken, _ = fault(arch, SIGBUS, TEXT + 0x8000, TEXT + 8)
    check(arch, "a fault of the poll page continues at the poll's landing", pc != landing,
          TEXT + 0x4000 <= pc < TEXT + 0x8000, taken == [])
    for signal, old in ((SIGSEGV, 0), (SIGBUS, 1), (8, 2)):
        pc, after, _, taken, _ = fault(arch, signal, 0x7fff12340000, 8)
        check(arch, f"signal {signal} in other code goes to its previous handler", taken == [old],
              pc == 0x7fff12340000, arch == "x64" or after.flags == 0)


# --- native threads

CODE_STACK = 0x60000000
CODE_STACK_BYTES = 0x20000
# Where the handler of a signal returns to.
SIGRETURN = TEXT + 0xf000
# What xnu leaves below the stack pointer of x64's interrupted code, and its largest set of registers, with AVX-512.
RED_ZONE = 128
VECTOR_STATE_BYTES = 2 * 1024 + 512
REGISTERS = {
    "x64": {name: getattr(x86, f"UC_X86_REG_{name.upper()}") for name, _ in X64State._fields_[4:21]},
    "arm64": {name: getattr(a64, f"UC_ARM64_REG_{name.upper()}") for name, _ in ArmState._fields_[3:36]},
}

# The stack pointer, the context, and what leads on: arm64's return address.
KEPT = {"x64": ("rsp", "r15", "rip"), "arm64": ("sp", "x28", "lr", "pc")}


class NativeThread:
    """A thread that enters the stub `call` as pthread_create enters its start routine, with a state and a stack as
    engine/tiers/native_thread.ts prepares them. Its function is `act(thread)`, which returns the address at which the code
    continues, or None to return."""

    def __init__(self, arch, act):
        self.arch, self.stubs = arch, CODE[arch]["stubs"]
        self.machine = machine = stub_machine(arch, STATE + 0x3000)
        uc = self.uc = machine.uc
        uc.mem_map(CODE_STACK, CODE_STACK_BYTES)
        self.context, self.state = STATE, STATE + 0x8000
        self.sp, self.lowest = None, 1 << 64

        def thunk(_machine, _arguments):
            self.sp = uc.reg_read(SP[arch])
            self.runs_on = uc.reg_read(x86.UC_X86_REG_R15 if arch == "x64" else a64.UC_ARM64_REG_X28)
            # Guest code may leave anything in the other registers.
            for name, register in REGISTERS[arch].items():
                if name not in KEPT[arch]:
                    uc.reg_write(register, 0xbadbadbadbad)
            self.next = act(self)
            return self.code

        def leave(_uc, address, _size, _data):
            if self.next is None:
                return
            for register, value in zip(INTEGERS[arch], self.arguments):
                uc.reg_write(register, value)
            uc.reg_write(PC[arch], self.next)

        def write(_uc, _access, address, _size, _value, _data):
            self.lowest = min(self.lowest, address)
        self.code, self.next, self.arguments = 0, None, ()
        top = CODE_STACK + CODE_STACK_BYTES - 64
        at = machine.function(thunk)
        uc.hook_add(UC_HOOK_CODE, leave, None, at, at)
        uc.hook_add(UC_HOOK_MEM_WRITE, write, None, CODE_STACK, CODE_STACK + CODE_STACK_BYTES - 1)
        machine.put(self.context + CONTEXT["THREAD"], self.state)
        for name, value in (("GUEST_SP", top), ("CALL_CONTEXT", self.context), ("CALL_THUNK", at),
                            ("STACK_LOW", CODE_STACK), ("STACK_HIGH", CODE_STACK + CODE_STACK_BYTES)):
            machine.put(self.state + THREAD[name], value)
        uc.mem_write(self.state + THREAD["STATUS"], b"\xff\xff\xff\xff")

    def run(self):
        """Runs the thread; returns its status."""
        self.machine.run(0x4000 + self.stubs["call"], self.state)
        return self.field("STATUS") & 0xffffffff

    def field(self, name):
        return self.machine.word(self.state + THREAD[name])

    def stub(self, name):
        return TEXT + 0x4000 + self.stubs[name]

    def signal(self, signal, pc, address):
        """Delivers a signal of the instruction at `pc` with the stack pointer that it has now, as xnu does where there is
        no signal stack: on the stack of the code. Returns the address of the handler, from which sigreturn goes on."""
        uc = self.uc
        state = X64State() if self.arch == "x64" else ArmState()
        for name, register in REGISTERS[self.arch].items():
            setattr(state, name, uc.reg_read(register))
        setattr(state, "rip" if self.arch == "x64" else "pc", pc)
        frame = (self.sp - RED_ZONE - VECTOR_STATE_BYTES - sizeof(state)) & -64
        context = frame - sizeof(UContext) & -16
        info = context - sizeof(SigInfo) & -16

        def sigreturn(*_):
            self.resumed = type(state).from_buffer_copy(uc.mem_read(frame, sizeof(state)))
            for name, register in REGISTERS[self.arch].items():
                uc.reg_write(register, getattr(self.resumed, name))
        uc.hook_add(UC_HOOK_CODE, sigreturn, None, SIGRETURN, SIGRETURN)
        uc.mem_write(frame, bytes(state))
        uc.mem_write(context, bytes(UContext(mcsize=sizeof(state), mcontext=frame)))
        uc.mem_write(info, bytes(SigInfo(signo=signal, addr=address)))
        self.lowest = min(self.lowest, info)
        sp = info - 8 if self.arch == "x64" else info
        if self.arch == "x64":
            self.machine.put(sp, SIGRETURN)
        else:
            uc.reg_write(a64.UC_ARM64_REG_X30, SIGRETURN)
        uc.reg_write(SP[self.arch], sp)
        self.arguments = (signal, info, context)
        return self.stub("faultHandler")


def check_threads(arch):
    done, trap = LAYOUTS["STATUS"]["DONE"], LAYOUTS["STATUS"]["TRAP"]
    thread = NativeThread(arch, lambda _: None)
    status = thread.run()
    check(arch, "a native thread runs a function on a stack of its own and returns to the system", status == done,
          thread.runs_on == thread.context, CODE_STACK < thread.sp < CODE_STACK + CODE_STACK_BYTES)

    def traps(thread):
        thread.code = 7
        return thread.stub("trapExit")
    thread = NativeThread(arch, traps)
    status = thread.run()
    check(arch, "a trap ends a native thread with its code", status == trap,
          thread.field("TRAP_CODE") & 0xffffffff == 7, thread.field("TRAP_CONTEXT") == thread.context)

    for signal in (SIGBUS, SIGSEGV):
        def faults(thread):
            return thread.signal(signal, TEXT + 0x8000, 0x123456789000)
        thread = NativeThread(arch, faults)
        status = thread.run()
        landing = thread.stub("faultLanding")
        check(arch, f"signal {signal} ends a native thread, on the stack of its code", status == trap,
              (thread.resumed.rip if arch == "x64" else thread.resumed.pc) == landing,
              thread.field("TRAP_PC") == TEXT + 0x8000, thread.field("FAULT_ADDRESS") == 0x123456789000,
              thread.sp - thread.lowest < LAYOUTS["NATIVE_SLACK_BYTES"])


# --- the watchdog

FOREVER = 0xffffffffffffffff
NEVER = 0x7fffffffffffffff


class Clock:
    """The functions that the watchdog calls, with a clock that the checks set."""

    def __init__(self, arch):
        self.machine = Machine(arch, bytes.fromhex(CODE[arch]["watchdog"]["bytes"]), "watchdog")
        self.offsets = CODE[arch]["watchdog"]
        self.now = 1000
        self.calls = []
        self.waits = []  # what to do when the thread waits; the thread stops when there is nothing more
        acts = {"pthread_sigmask": self.mask, "clock_gettime_nsec_np": self.time, "dispatch_time": self.when,
                "dispatch_semaphore_wait": self.wait, "dispatch_semaphore_signal": self.signal,
                "mprotect": self.protect}
        for k, name in enumerate(LAYOUTS["WATCHDOG_FUNCTIONS"]):
            self.machine.put(STATE + LAYOUTS["DARWIN_WATCH"]["FUNCTIONS"] + 8 * k, self.machine.function(acts[name]))
        self.machine.put(STATE + LAYOUTS["DARWIN_WATCH"]["SEMAPHORE"], 0x5e3a)
        self.machine.put(STATE + WATCH["PAGE"], 0x777000, 0x4000)
        self.machine.put(STATE + WATCH["SIGNALS"], FOREVER)
        self.failing = False

    def mask(self, _machine, arguments):
        self.calls.append(("mask", arguments[0], arguments[1] - STATE, arguments[2]))

    def time(self, _machine, arguments):
        assert arguments[0] == 8, "CLOCK_UPTIME_RAW"
        return self.now

    def when(self, _machine, arguments):
        assert arguments[0] == 0, "DISPATCH_TIME_NOW"
        return 0x800000000 + arguments[1]

    def wait(self, machine, arguments):
        assert arguments[0] == 0x5e3a
        self.calls.append(("wait", arguments[1], self.field("WAKES")))
        if not self.waits:
            machine.stopped = True
            return 0
        return self.waits.pop(0)()

    def signal(self, _machine, arguments):
        assert arguments[0] == 0x5e3a
        self.calls.append(("signal",))

    def protect(self, _machine, arguments):
        self.calls.append(("protect", arguments[0], arguments[1], arguments[2] & 0xffffffff))
        return 0xffffffff if self.failing else 0

    def field(self, name):
        return self.machine.word(STATE + WATCH[name])

    def take(self):
        calls, self.calls = self.calls, []
        return calls


def check_watchdog(arch):
    clock = Clock(arch)
    clock.machine.run(0, STATE)
    calls = clock.take()
    check(arch, "the watchdog blocks every signal and waits for ever", calls[0] == ("mask", 3, WATCH["SIGNALS"], 0),
          calls[1:] == [("wait", FOREVER, NEVER)])
    clock.machine.put(STATE + WATCH["DELAY"], 500)
    result = clock.machine.run(clock.offsets["arm"], STATE) & 0xffffffff
    check(arch, "arming sets the deadline and wakes a thread that would sleep longer", result == 0,
          clock.field("DEADLINE") == 1500, clock.take() == [("signal",)])
    clock.machine.run(0, STATE)
    check(arch, "the thread waits until the deadline", clock.take()[1:] == [("wait", 0x800000000 + 500, 1500)])
    clock.machine.put(STATE + WATCH["DELAY"], 800)
    clock.machine.run(clock.offsets["arm"], STATE)
    check(arch, "a later deadline does not wake it", clock.field("DEADLINE") == 1800, clock.take() == [])
    result = clock.machine.run(clock.offsets["disarm"], STATE) & 0xffffffff
    check(arch, "disarming in time reports so", result == 0, clock.field("DEADLINE") == 0, clock.take() == [])

    clock.machine.put(STATE + WATCH["DELAY"], 300)
    clock.machine.run(clock.offsets["arm"], STATE)
    clock.take()

    def pass_deadline():
        clock.now = 1300
        return 1
    clock.waits = [pass_deadline]
    clock.machine.run(0, STATE)
    check(arch, "a deadline that passes closes the page", clock.field("DEADLINE") == 2, clock.take()[1:] == [
        ("wait", 0x800000000 + 300, 1300), ("protect", 0x777000, 0x4000, 0), ("wait", FOREVER, NEVER)])
    clock.failing = True
    result = clock.machine.run(clock.offsets["disarm"], STATE) & 0xffffffff
    check(arch, "a page that cannot be opened is reported", result >> 31 == 1, clock.field("DEADLINE") == 2)
    clock.failing = False
    clock.take()
    result = clock.machine.run(clock.offsets["disarm"], STATE) & 0xffffffff
    check(arch, "disarming afterwards opens the page", result == 1, clock.field("DEADLINE") == 0,
          clock.take() == [("protect", 0x777000, 0x4000, 1)])

    clock.machine.put(STATE + WATCH["DEADLINE"], 1400)

    def change_deadline():
        clock.machine.put(STATE + WATCH["DEADLINE"], 0)
        clock.now = 2000
        return 1
    clock.waits = [change_deadline]
    clock.machine.run(0, STATE)
    check(arch, "a deadline that was taken back closes nothing", clock.field("DEADLINE") == 0,
          [call[0] for call in clock.take()] == ["mask", "wait", "wait"])

    clock.machine.put(STATE + WATCH["DEADLINE"], 1)  # the thread is closing the page
    steps = []

    def close_page(_uc, _address, _size, _data):
        steps.append(1)
        if len(steps) == 20:
            clock.machine.put(STATE + WATCH["DEADLINE"], 2)
    clock.machine.uc.hook_add(UC_HOOK_CODE, close_page, None, TEXT, TEXT + 0xffff)
    clock.take()
    result = clock.machine.run(clock.offsets["disarm"], STATE) & 0xffffffff
    check(arch, "disarming waits while the thread closes the page", result == 1, len(steps) > 20,
          clock.take() == [("protect", 0x777000, 0x4000, 1)])


# --- calls of C functions

def check_calls(arch):
    machine = Machine(arch, bytes.fromhex(CODE[arch]["call"]), "call")
    seen = []
    answers = []

    def target(m, arguments):
        stack = m.uc.reg_read(SP[arch])
        seen.append((arguments[:6], m.word(stack) if arch == "arm64" else None))
        return answers[0]
    errno = STATE + 0x800
    machine.uc.mem_write(errno, struct.pack("<I", 13))
    address, location = machine.function(target), machine.function(lambda _m, _a: errno)

    def call(answer, is_int):
        answers[:] = [answer]
        machine.put(STATE, address, 1, 2, 3, 4, 5, 6, 0x77, 0xabc, is_int, location)
        assert machine.run(0, STATE) & 0xffffffff == 0
        return machine.word(STATE + 64)
    check(arch, "a C call passes six arguments, and on arm64 the variadic one on the stack", call(99, 1) == 99,
          seen[-1] == ([1, 2, 3, 4, 5, 6], 0x77 if arch == "arm64" else None))
    check(arch, "an int result is extended, whatever its upper half is", call(0x1234567800000005, 1) == 5,
          call(0x12345678ffffffff, 1) == 2 ** 64 - 13)
    check(arch, "a long result of -1 is the error number", call(2 ** 64 - 1, 0) == 2 ** 64 - 13,
          call(0xffffffff, 0) == 0xffffffff, call(0x123456789abcdef0, 0) == 0x123456789abcdef0)


# --- the code that bsearch calls

def check_entries(arch):
    """The target is at offset 0 of both texts: a trap and a return, which a jump to LIBRARY replaces here."""
    entries = CODE[arch]["entries"]
    bound, block = [bytearray.fromhex(text) for text in entries["text"].split("|")]
    floats = []

    def machine_of(text, act, section):
        machine = Machine(arch, bytes(text), section)
        machine.function(act)
        # A jump fits nowhere in two bytes, so a hook on the target takes the place of its code.

        def at_target(uc, address, _size, _data):
            machine._hook(uc, LIBRARY, 0, None)
            if arch == "x64":
                sp = uc.reg_read(SP[arch])
                uc.reg_write(PC[arch], machine.word(sp))
                uc.reg_write(SP[arch], sp + 8)
            else:
                uc.reg_write(PC[arch], uc.reg_read(a64.UC_ARM64_REG_X30))
        machine.uc.hook_add(UC_HOOK_CODE, at_target, None, TEXT, TEXT)
        return machine
    seen = []
    machine = machine_of(bound, lambda _m, arguments: seen.append(arguments[0]) or 0x12345678fffffff9,
                         "bound call")
    machine.put(STATE, 0x1111111111111111)
    result = machine.run(entries["bound"], 0xabcd, STATE) & 0xffffffff
    check(arch, "a bound call passes the key and stores an i32 at the base; the comparison is 0", seen == [0xabcd],
          result == 0, machine.word(STATE) == 0x11111111fffffff9)

    def target(m, arguments):
        register = (lambda k: x86.UC_X86_REG_XMM0 + k) if arch == "x64" else (lambda k: a64.UC_ARM64_REG_D0 + k)
        floats.extend(m.uc.reg_read(register(k)) & 0xffffffffffffffff for k in range(2))
        seen.append(arguments[:4])
        return 0x1234567890
    machine = machine_of(block, target, "function")
    words = [struct.unpack("<Q", struct.pack("<d", 2.5))[0], struct.unpack("<I", struct.pack("<f", .5))[0]]
    machine.put(STATE, 11, 13, 14, 16)
    machine.put(STATE + entries["floats"], *words)
    result = machine.run(entries["block"], STATE, STATE) & 0xffffffff
    check(arch, "a function's parameters come from the block, and its result goes there", seen[1] == [11, 13, 14, 16],
          floats == words, result == 0, machine.word(STATE) == 0x1234567890)


# --- every instruction has run

# Bytes that never run: the traps behind unconditional jumps, and the padding between routines.
IDLE = {
    "x64": ("0f0b",),
    "arm64": ("000020d40000000000000000", "1f2003d5"),
}


def runs(offsets):
    """Offsets as lists of neighbours."""
    found = []
    for at in offsets:
        if found and found[-1][-1] == at - 1:
            found[-1].append(at)
        else:
            found.append([at])
    return found


def check_coverage(arch):
    stubs, entries = CODE[arch]["stubs"], CODE[arch]["entries"]
    bound, block = [bytes.fromhex(text)[:entries[name] + size] for text, name, size in
                    zip(entries["text"].split("|"), ("bound", "block"), entries["codeBytes"])]
    sections = {
        "handler": (bytes.fromhex(stubs["bytes"])[:stubs["faultWords"]], stubs["faultHandler"]),
        "watchdog": (bytes.fromhex(CODE[arch]["watchdog"]["bytes"]), 0),
        "call": (bytes.fromhex(CODE[arch]["call"]), 0),
        "bound call": (bound, entries["bound"]),
        "function": (block, entries["block"]),
    }
    for name, (text, start) in sections.items():
        missed = runs(at for at in range(start, len(text)) if at not in COVERED[arch, name])
        for run in missed:
            assert text[run[0]:run[-1] + 1].hex() in IDLE[arch], f"{arch}: no check runs the {name} from {run[0]} on"
    check(arch, f"every instruction of {', '.join(sections)} has run")


for processor in ("x64", "arm64"):
    check_faults(processor)
    check_threads(processor)
    check_watchdog(processor)
    check_calls(processor)
    check_entries(processor)
    check_coverage(processor)
