/**
 * wasi:sockets of WASI 0.2 without any grant: every operation is refused. In: nothing. Out: the functions and classes of
 * the interfaces. Invariant: no guest opens a socket or resolves a name.
 */
import { ComponentError } from "../abi/traps.ts";

function refuse(): never {
  throw new ComponentError("access-denied");
}

/** A class whose methods refuse. Guests have no objects of it, because nothing creates one. */
function refusing(...methods: readonly string[]): unknown {
  const made = class {};
  for (const name of methods) Object.defineProperty(made.prototype, name, { value: refuse });
  return made;
}

class Network {}

const TCP =
  "startBind finishBind startConnect finishConnect startListen finishListen accept localAddress remoteAddress " +
  "isListening addressFamily setListenBacklogSize keepAliveEnabled setKeepAliveEnabled keepAliveIdleTime " +
  "setKeepAliveIdleTime keepAliveInterval setKeepAliveInterval keepAliveCount setKeepAliveCount hopLimit setHopLimit " +
  "receiveBufferSize setReceiveBufferSize sendBufferSize setSendBufferSize subscribe shutdown";
const UDP = "startBind finishBind stream localAddress remoteAddress addressFamily unicastHopLimit setUnicastHopLimit " +
  "receiveBufferSize setReceiveBufferSize sendBufferSize setSendBufferSize subscribe";

/** The interfaces of wasi:sockets. */
export function socketInterfaces(): Record<string, object> {
  return {
    "wasi:sockets/instance-network": { instanceNetwork: () => new Network() },
    "wasi:sockets/network": { Network, networkErrorCode: () => undefined },
    "wasi:sockets/tcp-create-socket": { createTcpSocket: refuse },
    "wasi:sockets/udp-create-socket": { createUdpSocket: refuse },
    "wasi:sockets/tcp": { TcpSocket: refusing(...TCP.split(" ")) },
    "wasi:sockets/udp": {
      UdpSocket: refusing(...UDP.split(" ")),
      IncomingDatagramStream: refusing("receive", "subscribe"),
      OutgoingDatagramStream: refusing("checkSend", "send", "subscribe"),
    },
    "wasi:sockets/ip-name-lookup": {
      resolveAddresses: refuse,
      ResolveAddressStream: refusing("resolveNextAddress", "subscribe"),
    },
  };
}
