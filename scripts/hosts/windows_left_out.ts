/**
 * The tests that do not run on Windows, with the reasons. In: nothing. Out: rows for scripts/hosts/test_windows.ts,
 * which fails when another test is ignored there. Invariant: windows_left_out_test.ts finds a row for each condition in
 * the sources that ignores a test on Windows, and none without.
 */

/** `absent`: the tested feature does not exist on Windows. `untested`: it exists, but the test cannot run there. */
type Kind = "absent" | "untested";

/** A test; an empty name means all tests of the file. */
type LeftOutTest = readonly [file: string, name: string, kind: Kind, reason: string];

const NO_FIFO = "there are no FIFOs in the file system";
const NO_LINKS = "Wine makes no symbolic links; on Windows itself they need a privilege";
const GUEST_LINKS = "guests make no symbolic links on Windows";
const SOCKETS = "no socket can be given to a process as a descriptor";
const LISTENING = "modules listen on Linux alone";
const SIGNALS = "every signal ends a process at once";
const NO_MODES = "pipes have no O_NONBLOCK that a process inherits";
const NO_PTY = "pseudo-terminals of POSIX are missing";
const SAMPLES = "samples are taken on Linux alone";

export const LEFT_OUT_TESTS: readonly LeftOutTest[] = [
  ["project/base/deno_caches_test.ts", "a link in the place of a cache's log", "untested", NO_LINKS],
  ["project/base/deno_caches_test.ts", "a directory of caches that other users can write", "absent", "no such modes"],
  [
    "project/base/paths_test.ts",
    "project: files and directories that other users can write",
    "absent",
    "no such modes",
  ],
  [
    "project/base/paths_test.ts",
    "paths: a relative HOME is not a place for machine code",
    "absent",
    "the home directory comes from elsewhere",
  ],
  ["project/base/paths_test.ts", "machine: configuration, policy, tokens and records", "absent", "no such modes"],
  [
    "project/base/paths_test.ts",
    "project: a manifest or lockfile whose link leads through directories",
    "absent",
    "no such modes",
  ],
  ["project/base/paths_test.ts", "project: a file that others exchange after", "absent", "no such modes"],
  ["project/base/paths_test.ts", "project: files of another user are refused", "absent", "files have no user numbers"],
  ["project/base/system_path_test.ts", "paths are joined, resolved", "absent", "its paths are those of POSIX"],
  ["project/base/open_root_test.ts", "a symbolic link at any place of the path", "untested", NO_LINKS],
  ["project/plugins/authorities_test.ts", "a symbolic link on the way to a root", "untested", NO_LINKS],
  ["project/plugins/limits_test.ts", "waits for standard streams end at the deadline", "untested", NO_MODES],
  ["tests/cli_project/coredump_test.ts", "a link at the path of a core dump", "untested", NO_LINKS],
  ["tests/cli_project/coredump_test.ts", "a guest cannot redirect its core dump", "absent", GUEST_LINKS],
  ["tests/cli_project/explore_test.ts", "a source map that is a pipe", "absent", NO_FIFO],
  ["tests/cli_project/file_modes_test.ts", "files that commands write", "absent", "no such modes"],
  ["tests/cli_project/inspect_test.ts", "a pipe or a device in a directory of WIT", "absent", NO_FIFO],
  ["tests/cli_project/machine_wasi_test.ts", "guests get the directory that was checked", "untested", NO_LINKS],
  ["tests/cli_project/mistakes_test.ts", "modules come from pipes and devices", "absent", "it needs a shell of POSIX"],
  [
    "tests/cli_project/mistakes_test.ts",
    "output to a slow pipe arrives completely",
    "untested",
    "it needs a shell of POSIX",
  ],
  ["tests/cli_project/oci_test.ts", "a credential helper is asked for", "untested", "the helper is a script of POSIX"],
  ["tests/cli_project/profile_test.ts", "", "absent", SAMPLES],
  ["tests/cli_project/redis_test.ts", "a component stores values in Redis", "untested", "Redis has no server for it"],
  ["tests/cli_project/run_inputs_test.ts", "waft run --watch", "untested", SIGNALS],
  ["tests/cli_project/serve_operator_test.ts", "a collector that does not answer", "untested", SIGNALS],
  ["tests/cli_project/serve_operator_test.ts", "spans and metrics reach a collector", "untested", SIGNALS],
  ["tests/cli_project/serve_operator_test.ts", "the last counts of a worker count", "untested", SIGNALS],
  ["tests/cli_project/serve_operator_test.ts", "waft serve --config", "untested", SIGNALS],
  ["tests/cli_project/serve_operator_test.ts", "waft serve takes its socket", "absent", "there is no systemd"],
  ["tests/cli_project/serve_operator_test.ts", "waft serve --workers replaces", "untested", SIGNALS],
  ["tests/cli_project/serve_test.ts", "waft serve answers requests", "untested", SIGNALS],
  ["tests/cli_project/serve_test.ts", "waft serve --h2c", "untested", SIGNALS],
  ["tests/cli_project/serve_test.ts", "waft serve --tls-cert", "untested", SIGNALS],
  ["tests/cli_project/serve_test.ts", "without --json only failures are logged", "untested", SIGNALS],
  ["tests/cli_project/shell_test.ts", "completion: bash completes commands", "absent", "it needs bash"],
  ["tests/cli_project/shell_test.ts", "completion: bash completes the values", "absent", "it needs bash"],
  ["tests/cli_project/trust_test.ts", "trust: a root inside the project", "untested", NO_LINKS],
  ["tests/cli_project/trust_test.ts", "trust: at a terminal", "untested", NO_PTY],
  [
    "tests/embedding/lent_views_test.ts",
    "address space comes back",
    "untested",
    "it reads the address space from /proc",
  ],
  ["tests/embedding/profile_test.ts", "", "absent", SAMPLES],
  ["tests/embedding/soak_test.ts", "thousands of instances live", "untested", "it reads the memory in use from /proc"],
  ["tests/engine/given_back_test.ts", "execution of pages that were given back", "absent", "pages stay there"],
  ["tests/plugins/component_grants_test.ts", "a symbolic link on the way to a root", "untested", NO_LINKS],
  ["tests/plugins/hostile_test.ts", "hostile: a directory that turns into a link", "untested", NO_LINKS],
  [
    "tests/plugins/runner_plugin_test.ts",
    "the death of a process costs its plugin alone",
    "untested",
    "processes are found in /proc",
  ],
  ["tests/wasi/deadline_test.ts", "sockets end at the deadline", "untested", SOCKETS],
  ["tests/wasi/deadline_test.ts", "a FIFO that the guest opens", "absent", NO_FIFO],
  ["tests/wasi/escape_test.ts", "symbolic links do not lead out", "untested", NO_LINKS],
  ["tests/wasi/escape_test.ts", "opening a FIFO does not block", "absent", NO_FIFO],
  ["tests/wasi/escape_test.ts", "links below /proc do not lead out", "absent", "there is no /proc"],
  ["tests/wasi/escape_test.ts", "a tree that changes during the walk", "untested", NO_LINKS],
  ["tests/wasi/nonblocking_test.ts", "a read of a nonblocking standard input", "absent", NO_MODES],
  ["tests/wasi/nonblocking_test.ts", "a write to a full nonblocking standard output", "absent", NO_MODES],
  ["tests/wasi/memory_files_test.ts", "random calls on files in memory", "untested", "the model is Linux"],
  ["tests/wasi/paths_test.ts", "exclusive creation does not look behind a link", "untested", NO_LINKS],
  ["tests/wasi/paths_test.ts", "hard links to symbolic links", "untested", NO_LINKS],
  ["tests/wasi/paths_test.ts", "symbolic links are made, read and followed", "absent", GUEST_LINKS],
  ["tests/wasi/listening_sockets_test.ts", "waft run --listen gives a module", "absent", LISTENING],
  ["tests/wasi/listening_sockets_test.ts", "sockets come before directories", "absent", LISTENING],
  ["tests/wasi/sockets_test.ts", "sock_recv, sock_send and sock_shutdown", "untested", SOCKETS],
  ["tests/wasi/sockets_test.ts", "sock_accept takes a connection", "untested", SOCKETS],
  ["tests/wasi/storm_test.ts", "a directory that is swapped for a link", "untested", NO_LINKS],
];

/** Files of the command's tests that do not run on Windows, with the reasons. */
export const LEFT_OUT_FILES: Readonly<Record<string, string>> = {
  "tests/cli_project/newcomer_test.ts": "it needs the name localhost, and Wine here resolves no names",
  "tests/cli_project/progress_test.ts": NO_PTY,
  "tests/cli_project/quick_run_test.ts": "it counts the modules of the sources, which are the same",
  "tests/cli_project/readme_test.ts": "it types the README's commands into a shell of POSIX",
  "tests/cli_project/terminal_test.ts": NO_PTY,
  "tests/cli_project/tool_pages_test.ts": "it runs commands of the documentation in a shell of POSIX",
};

/** The most tests that may be left untested, of those that could run. */
export const MAX_LEFT_OUT = 0.03;

function rowOf(file: string, name: string): LeftOutTest | undefined {
  return LEFT_OUT_TESTS.find(([row, start]) => row === file && name.startsWith(start));
}

/** The ignored tests in the output of `deno test`, by their row; those without one by file and name. */
export function ignoredTests(output: string): { rows: LeftOutTest[]; unlisted: string[] } {
  const rows: LeftOutTest[] = [], unlisted: string[] = [];
  let file = "";
  for (const line of output.split("\n")) {
    file = /^running \d+ tests? from \.\/(\S+)/.exec(line)?.[1] ?? file;
    const name = /^(.*) \.\.\. ignored/.exec(line)?.[1];
    if (name === undefined) continue;
    const row = rowOf(file, name);
    if (row === undefined) unlisted.push(`${file}: ${name}`);
    else rows.push(row);
  }
  return { rows, unlisted };
}
