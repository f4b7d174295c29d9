/**
 * wasi:sockets/ip-name-lookup on the host's resolver. In: a name, and the grants of a guest. Out: a stream of
 * addresses. Invariant: only granted names are looked up, and only addresses to which the guest may connect are
 * returned.
 */
import { ComponentError } from "../abi/traps.ts";
import { requireHost } from "./network_grants.ts";
import { Condition } from "./readiness.ts";
import { type IpAddress, ipAddress } from "./socket_address.ts";
import { Pollable } from "./streams.ts";
import type { SocketContext } from "./tcp.ts";

/** wasi:sockets/ip-name-lookup resolve-address-stream. */
export class ResolveAddressStream {
  readonly #context: SocketContext;
  readonly #condition = new Condition(() => this.#addresses !== undefined || this.#error !== undefined);
  #addresses: string[] | undefined;
  #error: unknown;

  /**
   * Starts the lookup of `name`, which may be an address in brackets or without; it counts as a socket until it ends.
   * Throws the ComponentError invalid-argument for a text that is neither an address nor a name.
   */
  constructor(context: SocketContext, name: string) {
    const host = name.replace(/^\[(.*)\]$/, "$1");
    requireHost(host);
    context.quota.take();
    this.#context = context;
    context.grants.resolve(host).then((addresses) => {
      this.#addresses = addresses;
    }, (error: unknown) => {
      this.#error = error;
    }).finally(() => {
      context.quota.release();
      this.#condition.notify();
    });
  }

  resolveNextAddress(): IpAddress | undefined {
    if (this.#error !== undefined) throw this.#error;
    if (this.#addresses === undefined) throw new ComponentError("would-block");
    const address = this.#addresses.shift();
    return address === undefined ? undefined : ipAddress(address);
  }

  subscribe(): Pollable {
    return new Pollable(this.#context.preview1, this.#condition);
  }
}
