/**
 * Machine code of the host on Windows x64 (engine/host/code/windows_code.ts). The threads and the exception handler are
 * entered as Windows enters them (rcx); the other routines follow System V, like all of waft's machine code. They call
 * functions of Windows, and the start of a thread its code, through words of memory.
 *
 * Source: "x64 calling convention" of Microsoft's documentation; <winnt.h>.
 */
import { WATCH, WATCH_STATE } from "../../../engine/host/code/watchdog.ts";
import {
  COMMITTED_ON_ACCESS,
  WINDOWS_BLOCK,
  WINDOWS_WATCH,
  WINDOWS_WATCHDOG_FUNCTIONS,
} from "../../../engine/host/code/windows_code.ts";
import { X64_DISARM } from "./watchdog.ts";
import { keepingWin64Registers } from "./win64.ts";

const { DEADLINE, WAKES, SEQUENCE, TIME, PAGE, PAGE_BYTES, DELAY } = WATCH;
const { IS_FIRING, HAS_FIRED } = WATCH_STATE;
const { OLD_PROTECTION } = WINDOWS_WATCH;
const [WAIT, WAKE, PROTECT, CLOCK] = WINDOWS_WATCHDOG_FUNCTIONS.map((_, k) => WINDOWS_WATCH.FUNCTIONS + 8 * k);

/** Page protections, and states of memory. */
const PAGE_NOACCESS = 1;
const PAGE_READONLY = 2;
const PAGE_READWRITE = 4;
const MEM_COMMIT = 4096;
const MEM_RESERVE = 8192;

/** Nanoseconds of a unit of Windows' clocks. */
const TICK = 100;

/**
 * The watchdog. Its thread waits on the word SEQUENCE; the order of stores and loads is that of watchdog.ts. Times are
 * those of the clock that stops while the machine sleeps, in units of 100 ns, and RtlWaitOnAddress, on which
 * WaitOnAddress is built, takes a timeout in that unit instead of milliseconds.
 */
const WATCHDOG = `
  .globl arm
  .globl disarm
  // void* thread(state: rcx): never returns
thread:
  push rbx
  sub rsp, 48
  mov rbx, rcx
look: // whether there is a deadline, and whether it has passed
  mov esi, [rbx + ${SEQUENCE}]
  mov r12, [rbx + ${DEADLINE}]
  cmp r12, ${HAS_FIRED}
  jbe none
  lea rcx, [rbx + ${TIME}]
  call [rbx + ${CLOCK}]
  imul rax, [rbx + ${TIME}], ${TICK}
  mov rdi, r12
  sub rdi, rax
  jle fire
  lea rax, [rdi + ${TICK - 1}]
  xor edx, edx
  mov ecx, ${TICK}
  div rcx
  neg rax
  mov [rsp + 32], rax
  lea rdi, [rsp + 32]
  mov r14, r12
  jmp sleep
none:
  movabs r14, 0x7fffffffffffffff
  xor edi, edi
sleep: // publish the wake-up time, check again, wait
  xchg [rbx + ${WAKES}], r14
  cmp r12, [rbx + ${DEADLINE}]
  jne look
  mov [rsp + 40], esi
  lea rcx, [rbx + ${SEQUENCE}]
  lea rdx, [rsp + 40]
  mov r8d, 4
  mov r9, rdi
  call [rbx + ${WAIT}]
  jmp look
fire: // close the page, unless the deadline has changed
  mov rax, r12
  mov ecx, ${IS_FIRING}
  lock cmpxchg [rbx + ${DEADLINE}], rcx
  jne look
  mov rcx, [rbx + ${PAGE}]
  mov rdx, [rbx + ${PAGE_BYTES}]
  mov r8d, ${PAGE_NOACCESS}
  lea r9, [rbx + ${OLD_PROTECTION}]
  call [rbx + ${PROTECT}]
  mov eax, ${HAS_FIRED}
  xchg [rbx + ${DEADLINE}], rax
  jmp look
  // int arm(state: rdi)
arm:
  push rbx
  sub rsp, 48
  mov rbx, rdi
  lea rcx, [rsp + 40]
  call [rbx + ${CLOCK}]
  imul rax, [rsp + 40], ${TICK}
  add rax, [rbx + ${DELAY}]
  mov rcx, rax
  xchg [rbx + ${DEADLINE}], rcx
  cmp rax, [rbx + ${WAKES}]
  jge armed
  lock add dword ptr [rbx + ${SEQUENCE}], 1
  lea rcx, [rbx + ${SEQUENCE}]
  call [rbx + ${WAKE}]
armed:
  xor eax, eax
  add rsp, 48
  pop rbx
  ret
  // int disarm(state: rdi): 0, 1 when the deadline had passed, negative when the page cannot be opened
disarm:
${X64_DISARM}
fired: // open the page
  push rbx
  sub rsp, 48
  mov rbx, rdi
  mov rcx, [rbx + ${PAGE}]
  mov rdx, [rbx + ${PAGE_BYTES}]
  mov r8d, ${PAGE_READONLY}
  lea r9, [rsp + 40]
  call [rbx + ${PROTECT}]
  mov ecx, eax
  mov eax, ${-1 >>> 0}
  test ecx, ecx
  je failed
  xor ecx, ecx
  xchg [rbx + ${DEADLINE}], rcx
  mov eax, 1
failed:
  add rsp, 48
  pop rbx
  ret
`;

const STATUS_ACCESS_VIOLATION = 0xc0000005;
/** Offsets in EXCEPTION_RECORD of an access: ExceptionInformation[0] and [1]; the kind of a fetch. */
const ACCESS_KIND = 32;
const ACCESS_ADDRESS = 40;
const ACCESS_EXECUTES = 8;
/** Offsets in MEMORY_BASIC_INFORMATION, whose address of the page is first, and its size. */
const INFO = { ALLOCATION_PROTECT: 16, REGION_SIZE: 24, STATE: 32, PROTECT: 36, BYTES: 48 } as const;
/** The place of that structure on the stack, above the 32 bytes that belong to called functions. */
const LOCAL = 32;
/** The size of the parts that are committed, a power of two. */
const COMMITTED_BYTES = 262144;

/**
 * The exception handler that commits memory. An access to a reserved page of a marked allocation, or a read where the
 * mark is READ_ONLY, commits up to 256 KiB from that page on and is repeated; every other exception goes to the next
 * handler. Pages in front of it may be committed with another protection, which committing again would change. It keeps
 * no table of ranges, so the handler of any realm serves all realms of the process.
 *
 * The words behind the code are the addresses of COMMIT_FUNCTIONS.
 */
const COMMIT = `
  .globl query
  // LONG handler(EXCEPTION_POINTERS *: rcx)
handler:
  mov rax, [rcx]
  cmp dword ptr [rax], ${STATUS_ACCESS_VIOLATION}
  jne other
  cmp dword ptr [rax + ${ACCESS_KIND}], ${ACCESS_EXECUTES}
  je other
  push rbx
  push rsi
  sub rsp, 88
  mov rbx, [rax + ${ACCESS_ADDRESS}]
  mov esi, [rax + ${ACCESS_KIND}]
  mov rcx, rbx
  lea rdx, [rsp + ${LOCAL}]
  mov r8d, ${INFO.BYTES}
  call [rip + query]
  test rax, rax
  je leave
  mov eax, [rsp + ${LOCAL + INFO.ALLOCATION_PROTECT}]
  mov r9d, ${PAGE_READWRITE}
  cmp eax, ${COMMITTED_ON_ACCESS.READ_WRITE}
  je lazy
  cmp eax, ${COMMITTED_ON_ACCESS.READ_ONLY}
  jne leave
  test esi, esi
  jne leave
  mov r9d, ${PAGE_READONLY}
lazy: // readable and writable, or an access that reads a readable range
  mov ecx, [rsp + ${LOCAL + INFO.STATE}]
  cmp ecx, ${MEM_COMMIT}
  je committed
  cmp ecx, ${MEM_RESERVE}
  jne leave
  mov rcx, [rsp + ${LOCAL}]
  mov rdx, rcx
  and rdx, ${-COMMITTED_BYTES}
  add rdx, ${COMMITTED_BYTES}
  mov rax, rcx
  add rax, [rsp + ${LOCAL + INFO.REGION_SIZE}]
  cmp rdx, rax
  cmova rdx, rax
  sub rdx, rcx
  mov r8d, ${MEM_COMMIT}
  call [rip + allocate]
  test rax, rax
  jne again
leave: // continue the search for a handler
  add rsp, 88
  pop rsi
  pop rbx
other:
  xor eax, eax
  ret
committed: // by another thread in the meantime, unless the page is protected
  cmp r9d, [rsp + ${LOCAL + INFO.PROTECT}]
  jne leave
again: // repeat the access
  mov eax, ${-1 >>> 0}
  add rsp, 88
  pop rsi
  pop rbx
  ret
  .balign 8, 204
query:
  .quad 0
allocate:
  .quad 0
`;

const { FUNCTION, ARGUMENTS, RESULT, GET_LAST_ERROR, ERROR } = WINDOWS_BLOCK;

/** Calls a function with eleven integers, and GetLastError after it. In and out: a block of words. */
const CALL = `
  // int call(block: rdi)
call:
  push rbx
  sub rsp, 96
  mov rbx, rdi
  mov rax, [rbx + ${ARGUMENTS + 8 * 4}]
  mov [rsp + 32], rax
  mov rax, [rbx + ${ARGUMENTS + 8 * 5}]
  mov [rsp + 40], rax
  mov rax, [rbx + ${ARGUMENTS + 8 * 6}]
  mov [rsp + 48], rax
  mov rax, [rbx + ${ARGUMENTS + 8 * 7}]
  mov [rsp + 56], rax
  mov rax, [rbx + ${ARGUMENTS + 8 * 8}]
  mov [rsp + 64], rax
  mov rax, [rbx + ${ARGUMENTS + 8 * 9}]
  mov [rsp + 72], rax
  mov rax, [rbx + ${ARGUMENTS + 8 * 10}]
  mov [rsp + 80], rax
  mov rcx, [rbx + ${ARGUMENTS + 8 * 0}]
  mov rdx, [rbx + ${ARGUMENTS + 8 * 1}]
  mov r8, [rbx + ${ARGUMENTS + 8 * 2}]
  mov r9, [rbx + ${ARGUMENTS + 8 * 3}]
  call [rbx + ${FUNCTION}]
  mov [rbx + ${RESULT}], rax
  call [rbx + ${GET_LAST_ERROR}]
  mov [rbx + ${ERROR}], rax
  xor eax, eax
  add rsp, 96
  pop rbx
  ret
`;

/** The start of a thread that runs code of System V's convention, whose address is at `code`, with its argument. */
const THREAD_START = `
  .globl code
  // DWORD start(argument: rcx)
${
  keepingWin64Registers(`  mov rdi, rcx
  call [rip + code]`)
}
  .balign 8, 204
code:
  .quad 0
`;

/** Windows runs on x64 alone here. */
export const WINDOWS_PROGRAMS = {
  watchdog: { x64: WATCHDOG },
  commit: { x64: COMMIT },
  call: { x64: CALL },
  threadStart: { x64: THREAD_START },
} as const;
