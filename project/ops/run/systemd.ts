/**
 * The protocol of systemd for services. In: the variables LISTEN_PID, LISTEN_FDS and NOTIFY_SOCKET. Out: the descriptor
 * of a listening socket that systemd passes (socket activation), and messages about the state of the service
 * (`Type=notify`). No effect outside of systemd.
 */
import { spawn } from "node:child_process";
import process from "node:process";
import { listensOnDescriptors } from "@waft/engine/internal/host/machine";

/** The descriptor of the first socket that systemd passes. */
const FIRST_DESCRIPTOR = 3;

/**
 * The descriptor of the socket that systemd has passed to process `pid`; undefined if there is none. Throws an Error
 * for several sockets, and on JavaScript runtimes that cannot use one.
 */
export function passedSocket(pid: number): number | undefined {
  const { LISTEN_PID, LISTEN_FDS } = process.env;
  if (LISTEN_FDS === undefined || Number(LISTEN_PID) !== pid) return undefined;
  if (LISTEN_FDS !== "1") throw new Error(`systemd passes ${LISTEN_FDS} sockets; the server takes one`);
  if (!listensOnDescriptors()) throw new Error("this JavaScript runtime cannot listen on a socket of systemd");
  return FIRST_DESCRIPTOR;
}

/**
 * Tells systemd the state of this service. JavaScript runtimes have no datagrams between processes, so systemd's own
 * command sends the message; resolves when it has ended. A message that cannot be sent has no effect.
 */
export function notifySystemd(state: "ready" | "stopping"): Promise<void> {
  const { NOTIFY_SOCKET } = process.env;
  if (NOTIFY_SOCKET === undefined || NOTIFY_SOCKET === "") return Promise.resolve();
  return new Promise((resolve) => {
    const child = spawn("systemd-notify", [`--pid=${process.pid}`, `--${state}`], { stdio: "ignore" });
    child.on("error", () => resolve());
    child.on("exit", () => resolve());
  });
}
