/**
 * wasi:sockets of WASI 0.2. In: the grants of a guest. Out: the functions and classes of the interfaces. Invariant:
 * without a grant, no guest opens a socket or resolves a name.
 */
import { ComponentError } from "../abi/traps.ts";
import type { NetworkGrants } from "./network_grants.ts";
import { ResolveAddressStream } from "./name_lookup.ts";
import type { Preview1 } from "./preview1.ts";
import { type Family, SocketQuota } from "./socket_address.ts";
import { type SocketContext, TcpSocket } from "./tcp.ts";
import { IncomingDatagramStream, OutgoingDatagramStream, UdpSocket } from "./udp.ts";

/** The maximum number of sockets and lookups of a guest at one time. */
const MAX_SOCKETS = 256;

class Network {}

/** State that the sockets of one guest share. */
export function socketContext(preview1: Preview1, grants: NetworkGrants): SocketContext {
  return { preview1, grants, quota: new SocketQuota(MAX_SOCKETS) };
}

/** The interfaces of wasi:sockets. */
export function socketInterfaces(context: SocketContext): Record<string, object> {
  const { grants } = context;
  /** Makes an object that uses the network, if there is any grant. */
  const granted = <Args extends unknown[], T>(make: (...args: Args) => T) => (...args: Args): T => {
    if (grants.isEmpty) throw new ComponentError("access-denied");
    return make(...args);
  };
  return {
    "wasi:sockets/instance-network": { instanceNetwork: () => new Network() },
    "wasi:sockets/network": { Network, networkErrorCode: () => undefined },
    "wasi:sockets/tcp-create-socket": {
      createTcpSocket: granted((family: Family) => new TcpSocket(context, family)),
    },
    "wasi:sockets/udp-create-socket": {
      createUdpSocket: granted((family: Family) => new UdpSocket(context, family)),
    },
    "wasi:sockets/tcp": { TcpSocket },
    "wasi:sockets/udp": { UdpSocket, IncomingDatagramStream, OutgoingDatagramStream },
    "wasi:sockets/ip-name-lookup": {
      resolveAddresses: granted((_network: unknown, name: string) => new ResolveAddressStream(context, name)),
      ResolveAddressStream,
    },
  };
}
