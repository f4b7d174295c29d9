/**
 * The functions of WASI 0.2 and 0.3: the shape (abi/type_name.ts) of every function, by interface and name. `$n` stands
 * for a type of TYPES. Written by tests/component/wasi_shapes_test.ts from the specification's WIT; WAFT_BLESS=1 renews
 * it.
 */

/** Types that several functions have. */
export const TYPES: readonly string[] = [
  "record { seconds: u64, nanoseconds: u32 }",
  "record { utc-offset: s32, name: string, in-daylight-saving-time: bool }",
  "enum { access, would-block, already, bad-descriptor, busy, deadlock, quota, exist, file-too-large, illegal-byte-sequence, in-progress, interrupted, invalid, io, is-directory, loop, too-many-links, message-size, name-too-long, no-device, no-entry, no-lock, insufficient-memory, insufficient-space, not-directory, not-empty, not-recoverable, unsupported, no-tty, no-such-device, overflow, not-permitted, pipe, read-only, invalid-seek, text-file-busy, cross-device }",
  "enum { normal, sequential, random, will-need, dont-need, no-reuse }",
  "flags { read, write, file-integrity-sync, data-integrity-sync, requested-write-sync, mutate-directory }",
  "enum { unknown, block-device, character-device, directory, fifo, symbolic-link, regular-file, socket }",
  "variant { no-change, now, timestamp($0) }",
  "record { type: $5, link-count: u64, size: u64, data-access-timestamp: option<$0>, data-modification-timestamp: option<$0>, status-change-timestamp: option<$0> }",
  "flags { create, directory, exclusive, truncate }",
  "record { rcode: option<string>, info-code: option<u16> }",
  "record { alert-id: option<u8>, alert-message: option<string> }",
  "record { field-name: option<string>, field-size: option<u32> }",
  "variant { DNS-timeout, DNS-error($9), destination-not-found, destination-unavailable, destination-IP-prohibited, destination-IP-unroutable, connection-refused, connection-terminated, connection-timeout, connection-read-timeout, connection-write-timeout, connection-limit-reached, TLS-protocol-error, TLS-certificate-error, TLS-alert-received($10), HTTP-request-denied, HTTP-request-length-required, HTTP-request-body-size(option<u64>), HTTP-request-method-invalid, HTTP-request-URI-invalid, HTTP-request-URI-too-long, HTTP-request-header-section-size(option<u32>), HTTP-request-header-size(option<$11>), HTTP-request-trailer-section-size(option<u32>), HTTP-request-trailer-size($11), HTTP-response-incomplete, HTTP-response-header-section-size(option<u32>), HTTP-response-header-size($11), HTTP-response-body-size(option<u64>), HTTP-response-trailer-section-size(option<u32>), HTTP-response-trailer-size($11), HTTP-response-transfer-coding(option<string>), HTTP-response-content-coding(option<string>), HTTP-response-timeout, HTTP-upgrade-failed, HTTP-protocol-error, loop-detected, configuration-error, internal-error(option<string>) }",
  "variant { invalid-syntax, forbidden, immutable }",
  "variant { get, head, post, put, delete, connect, options, trace, patch, other(string) }",
  "variant { last-operation-failed(own<error>), closed }",
  "variant { ipv4(tuple<u8, u8, u8, u8>), ipv6(tuple<u16, u16, u16, u16, u16, u16, u16, u16>) }",
  "enum { unknown, access-denied, not-supported, invalid-argument, out-of-memory, timeout, concurrency-conflict, not-in-progress, would-block, invalid-state, new-socket-limit, address-not-bindable, address-in-use, remote-unreachable, connection-refused, connection-reset, connection-aborted, datagram-too-large, name-unresolvable, temporary-resolver-failure, permanent-resolver-failure }",
  "record { port: u16, address: tuple<u8, u8, u8, u8> }",
  "record { port: u16, flow-info: u32, address: tuple<u16, u16, u16, u16, u16, u16, u16, u16>, scope-id: u32 }",
  "enum { io, illegal-byte-sequence, pipe }",
  "record { seconds: s64, nanoseconds: u32 }",
  "variant { access, already, bad-descriptor, busy, deadlock, quota, exist, file-too-large, illegal-byte-sequence, in-progress, interrupted, invalid, io, is-directory, loop, too-many-links, message-size, name-too-long, no-device, no-entry, no-lock, insufficient-memory, insufficient-space, not-directory, not-empty, not-recoverable, unsupported, no-tty, no-such-device, overflow, not-permitted, pipe, read-only, invalid-seek, text-file-busy, cross-device, other(option<string>) }",
  "variant { block-device, character-device, directory, fifo, symbolic-link, regular-file, socket, other(option<string>) }",
  "variant { no-change, now, timestamp($21) }",
  "record { type: $23, link-count: u64, size: u64, data-access-timestamp: option<$21>, data-modification-timestamp: option<$21>, status-change-timestamp: option<$21> }",
  "variant { invalid-syntax, forbidden, immutable, size-exceeded, other(option<string>) }",
  "variant { not-supported, immutable, other(option<string>) }",
  "variant { access-denied, invalid-argument, name-unresolvable, temporary-resolver-failure, permanent-resolver-failure, other(option<string>) }",
  "variant { access-denied, not-supported, invalid-argument, out-of-memory, timeout, invalid-state, address-not-bindable, address-in-use, remote-unreachable, connection-refused, connection-broken, connection-reset, connection-aborted, datagram-too-large, other(option<string>) }",
];

/** By interface: a line for each function, its name and its shape. */
export const FUNCTIONS: Readonly<Record<string, string>> = {
  "wasi:cli/environment@0.2": `
get-environment func() -> list<tuple<string, string>>
get-arguments func() -> list<string>
initial-cwd func() -> option<string>
`,
  "wasi:cli/environment@0.3.0": `
get-environment func() -> list<tuple<string, string>>
get-arguments func() -> list<string>
get-initial-cwd func() -> option<string>
`,
  "wasi:cli/exit@0.2": `
exit func(result)
exit-with-code func(u8)
`,
  "wasi:cli/exit@0.3.0": `
exit func(result)
exit-with-code func(u8)
`,
  "wasi:cli/run@0.2": `
run func() -> result
`,
  "wasi:cli/run@0.3.0": `
run async func() -> result
`,
  "wasi:cli/stderr@0.2": `
get-stderr func() -> own<output-stream>
`,
  "wasi:cli/stderr@0.3.0": `
write-via-stream func(stream<u8>) -> future<result<_, $20>>
`,
  "wasi:cli/stdin@0.2": `
get-stdin func() -> own<input-stream>
`,
  "wasi:cli/stdin@0.3.0": `
read-via-stream func() -> tuple<stream<u8>, future<result<_, $20>>>
`,
  "wasi:cli/stdout@0.2": `
get-stdout func() -> own<output-stream>
`,
  "wasi:cli/stdout@0.3.0": `
write-via-stream func(stream<u8>) -> future<result<_, $20>>
`,
  "wasi:cli/terminal-stderr@0.2": `
get-terminal-stderr func() -> option<own<terminal-output>>
`,
  "wasi:cli/terminal-stderr@0.3.0": `
get-terminal-stderr func() -> option<own<terminal-output>>
`,
  "wasi:cli/terminal-stdin@0.2": `
get-terminal-stdin func() -> option<own<terminal-input>>
`,
  "wasi:cli/terminal-stdin@0.3.0": `
get-terminal-stdin func() -> option<own<terminal-input>>
`,
  "wasi:cli/terminal-stdout@0.2": `
get-terminal-stdout func() -> option<own<terminal-output>>
`,
  "wasi:cli/terminal-stdout@0.3.0": `
get-terminal-stdout func() -> option<own<terminal-output>>
`,
  "wasi:clocks/monotonic-clock@0.2": `
now func() -> u64
resolution func() -> u64
subscribe-instant func(u64) -> own<pollable>
subscribe-duration func(u64) -> own<pollable>
`,
  "wasi:clocks/monotonic-clock@0.3.0": `
now func() -> u64
get-resolution func() -> u64
wait-until async func(u64)
wait-for async func(u64)
`,
  "wasi:clocks/system-clock@0.3.0": `
now func() -> $21
get-resolution func() -> u64
`,
  "wasi:clocks/timezone@0.2": `
display func($0) -> $1
utc-offset func($0) -> s32
`,
  "wasi:clocks/timezone@0.3.0": `
iana-id func() -> option<string>
utc-offset func($21) -> option<s64>
to-debug-string func() -> string
`,
  "wasi:clocks/wall-clock@0.2": `
now func() -> $0
resolution func() -> $0
`,
  "wasi:filesystem/preopens@0.2": `
get-directories func() -> list<tuple<own<descriptor>, string>>
`,
  "wasi:filesystem/preopens@0.3.0": `
get-directories func() -> list<tuple<own<descriptor>, string>>
`,
  "wasi:filesystem/types@0.2": `
[method]descriptor.read-via-stream func(borrow<descriptor>, u64) -> result<own<input-stream>, $2>
[method]descriptor.write-via-stream func(borrow<descriptor>, u64) -> result<own<output-stream>, $2>
[method]descriptor.append-via-stream func(borrow<descriptor>) -> result<own<output-stream>, $2>
[method]descriptor.advise func(borrow<descriptor>, u64, u64, $3) -> result<_, $2>
[method]descriptor.sync-data func(borrow<descriptor>) -> result<_, $2>
[method]descriptor.get-flags func(borrow<descriptor>) -> result<$4, $2>
[method]descriptor.get-type func(borrow<descriptor>) -> result<$5, $2>
[method]descriptor.set-size func(borrow<descriptor>, u64) -> result<_, $2>
[method]descriptor.set-times func(borrow<descriptor>, $6, $6) -> result<_, $2>
[method]descriptor.read func(borrow<descriptor>, u64, u64) -> result<tuple<list<u8>, bool>, $2>
[method]descriptor.write func(borrow<descriptor>, list<u8>, u64) -> result<u64, $2>
[method]descriptor.read-directory func(borrow<descriptor>) -> result<own<directory-entry-stream>, $2>
[method]descriptor.sync func(borrow<descriptor>) -> result<_, $2>
[method]descriptor.create-directory-at func(borrow<descriptor>, string) -> result<_, $2>
[method]descriptor.stat func(borrow<descriptor>) -> result<$7, $2>
[method]descriptor.stat-at func(borrow<descriptor>, flags { symlink-follow }, string) -> result<$7, $2>
[method]descriptor.set-times-at func(borrow<descriptor>, flags { symlink-follow }, string, $6, $6) -> result<_, $2>
[method]descriptor.link-at func(borrow<descriptor>, flags { symlink-follow }, string, borrow<descriptor>, string) -> result<_, $2>
[method]descriptor.open-at func(borrow<descriptor>, flags { symlink-follow }, string, $8, $4) -> result<own<descriptor>, $2>
[method]descriptor.readlink-at func(borrow<descriptor>, string) -> result<string, $2>
[method]descriptor.remove-directory-at func(borrow<descriptor>, string) -> result<_, $2>
[method]descriptor.rename-at func(borrow<descriptor>, string, borrow<descriptor>, string) -> result<_, $2>
[method]descriptor.symlink-at func(borrow<descriptor>, string, string) -> result<_, $2>
[method]descriptor.unlink-file-at func(borrow<descriptor>, string) -> result<_, $2>
[method]descriptor.is-same-object func(borrow<descriptor>, borrow<descriptor>) -> bool
[method]descriptor.metadata-hash func(borrow<descriptor>) -> result<record { lower: u64, upper: u64 }, $2>
[method]descriptor.metadata-hash-at func(borrow<descriptor>, flags { symlink-follow }, string) -> result<record { lower: u64, upper: u64 }, $2>
[method]directory-entry-stream.read-directory-entry func(borrow<directory-entry-stream>) -> result<option<record { type: $5, name: string }>, $2>
filesystem-error-code func(borrow<error>) -> option<$2>
`,
  "wasi:filesystem/types@0.3.0": `
[method]descriptor.read-via-stream func(borrow<descriptor>, u64) -> tuple<stream<u8>, future<result<_, $22>>>
[method]descriptor.write-via-stream func(borrow<descriptor>, stream<u8>, u64) -> future<result<_, $22>>
[method]descriptor.append-via-stream func(borrow<descriptor>, stream<u8>) -> future<result<_, $22>>
[method]descriptor.advise async func(borrow<descriptor>, u64, u64, $3) -> result<_, $22>
[method]descriptor.sync-data async func(borrow<descriptor>) -> result<_, $22>
[method]descriptor.get-flags async func(borrow<descriptor>) -> result<$4, $22>
[method]descriptor.get-type async func(borrow<descriptor>) -> result<$23, $22>
[method]descriptor.set-size async func(borrow<descriptor>, u64) -> result<_, $22>
[method]descriptor.set-times async func(borrow<descriptor>, $24, $24) -> result<_, $22>
[method]descriptor.read-directory func(borrow<descriptor>) -> tuple<stream<record { type: $23, name: string }>, future<result<_, $22>>>
[method]descriptor.sync async func(borrow<descriptor>) -> result<_, $22>
[method]descriptor.create-directory-at async func(borrow<descriptor>, string) -> result<_, $22>
[method]descriptor.stat async func(borrow<descriptor>) -> result<$25, $22>
[method]descriptor.stat-at async func(borrow<descriptor>, flags { symlink-follow }, string) -> result<$25, $22>
[method]descriptor.set-times-at async func(borrow<descriptor>, flags { symlink-follow }, string, $24, $24) -> result<_, $22>
[method]descriptor.link-at async func(borrow<descriptor>, flags { symlink-follow }, string, borrow<descriptor>, string) -> result<_, $22>
[method]descriptor.open-at async func(borrow<descriptor>, flags { symlink-follow }, string, $8, $4) -> result<own<descriptor>, $22>
[method]descriptor.readlink-at async func(borrow<descriptor>, string) -> result<string, $22>
[method]descriptor.remove-directory-at async func(borrow<descriptor>, string) -> result<_, $22>
[method]descriptor.rename-at async func(borrow<descriptor>, string, borrow<descriptor>, string) -> result<_, $22>
[method]descriptor.symlink-at async func(borrow<descriptor>, string, string) -> result<_, $22>
[method]descriptor.unlink-file-at async func(borrow<descriptor>, string) -> result<_, $22>
[method]descriptor.is-same-object async func(borrow<descriptor>, borrow<descriptor>) -> bool
[method]descriptor.metadata-hash async func(borrow<descriptor>) -> result<record { lower: u64, upper: u64 }, $22>
[method]descriptor.metadata-hash-at async func(borrow<descriptor>, flags { symlink-follow }, string) -> result<record { lower: u64, upper: u64 }, $22>
`,
  "wasi:http/client@0.3.0": `
send async func(own<request>) -> result<own<response>, $12>
`,
  "wasi:http/handler@0.3.0": `
handle async func(own<request>) -> result<own<response>, $12>
`,
  "wasi:http/incoming-handler@0.2": `
handle func(own<incoming-request>, own<response-outparam>)
`,
  "wasi:http/outgoing-handler@0.2": `
handle func(own<outgoing-request>, option<own<request-options>>) -> result<own<future-incoming-response>, $12>
`,
  "wasi:http/types@0.2": `
[constructor]fields func() -> own<fields>
[static]fields.from-list func(list<tuple<string, list<u8>>>) -> result<own<fields>, $13>
[method]fields.get func(borrow<fields>, string) -> list<list<u8>>
[method]fields.has func(borrow<fields>, string) -> bool
[method]fields.set func(borrow<fields>, string, list<list<u8>>) -> result<_, $13>
[method]fields.delete func(borrow<fields>, string) -> result<_, $13>
[method]fields.append func(borrow<fields>, string, list<u8>) -> result<_, $13>
[method]fields.entries func(borrow<fields>) -> list<tuple<string, list<u8>>>
[method]fields.clone func(borrow<fields>) -> own<fields>
[method]incoming-request.method func(borrow<incoming-request>) -> $14
[method]incoming-request.path-with-query func(borrow<incoming-request>) -> option<string>
[method]incoming-request.scheme func(borrow<incoming-request>) -> option<variant { HTTP, HTTPS, other(string) }>
[method]incoming-request.authority func(borrow<incoming-request>) -> option<string>
[method]incoming-request.headers func(borrow<incoming-request>) -> own<fields>
[method]incoming-request.consume func(borrow<incoming-request>) -> result<own<incoming-body>>
[constructor]outgoing-request func(own<fields>) -> own<outgoing-request>
[method]outgoing-request.body func(borrow<outgoing-request>) -> result<own<outgoing-body>>
[method]outgoing-request.method func(borrow<outgoing-request>) -> $14
[method]outgoing-request.set-method func(borrow<outgoing-request>, $14) -> result
[method]outgoing-request.path-with-query func(borrow<outgoing-request>) -> option<string>
[method]outgoing-request.set-path-with-query func(borrow<outgoing-request>, option<string>) -> result
[method]outgoing-request.scheme func(borrow<outgoing-request>) -> option<variant { HTTP, HTTPS, other(string) }>
[method]outgoing-request.set-scheme func(borrow<outgoing-request>, option<variant { HTTP, HTTPS, other(string) }>) -> result
[method]outgoing-request.authority func(borrow<outgoing-request>) -> option<string>
[method]outgoing-request.set-authority func(borrow<outgoing-request>, option<string>) -> result
[method]outgoing-request.headers func(borrow<outgoing-request>) -> own<fields>
[constructor]request-options func() -> own<request-options>
[method]request-options.connect-timeout func(borrow<request-options>) -> option<u64>
[method]request-options.set-connect-timeout func(borrow<request-options>, option<u64>) -> result
[method]request-options.first-byte-timeout func(borrow<request-options>) -> option<u64>
[method]request-options.set-first-byte-timeout func(borrow<request-options>, option<u64>) -> result
[method]request-options.between-bytes-timeout func(borrow<request-options>) -> option<u64>
[method]request-options.set-between-bytes-timeout func(borrow<request-options>, option<u64>) -> result
[method]response-outparam.send-informational func(borrow<response-outparam>, u16, own<fields>) -> result<_, $12>
[static]response-outparam.set func(own<response-outparam>, result<own<outgoing-response>, $12>)
[method]incoming-response.status func(borrow<incoming-response>) -> u16
[method]incoming-response.headers func(borrow<incoming-response>) -> own<fields>
[method]incoming-response.consume func(borrow<incoming-response>) -> result<own<incoming-body>>
[method]incoming-body.stream func(borrow<incoming-body>) -> result<own<input-stream>>
[static]incoming-body.finish func(own<incoming-body>) -> own<future-trailers>
[method]future-trailers.subscribe func(borrow<future-trailers>) -> own<pollable>
[method]future-trailers.get func(borrow<future-trailers>) -> option<result<result<option<own<fields>>, $12>>>
[constructor]outgoing-response func(own<fields>) -> own<outgoing-response>
[method]outgoing-response.status-code func(borrow<outgoing-response>) -> u16
[method]outgoing-response.set-status-code func(borrow<outgoing-response>, u16) -> result
[method]outgoing-response.headers func(borrow<outgoing-response>) -> own<fields>
[method]outgoing-response.body func(borrow<outgoing-response>) -> result<own<outgoing-body>>
[method]outgoing-body.write func(borrow<outgoing-body>) -> result<own<output-stream>>
[static]outgoing-body.finish func(own<outgoing-body>, option<own<fields>>) -> result<_, $12>
[method]future-incoming-response.subscribe func(borrow<future-incoming-response>) -> own<pollable>
[method]future-incoming-response.get func(borrow<future-incoming-response>) -> option<result<result<own<incoming-response>, $12>>>
http-error-code func(borrow<error>) -> option<$12>
`,
  "wasi:http/types@0.3.0": `
[constructor]fields func() -> own<fields>
[static]fields.from-list func(list<tuple<string, list<u8>>>) -> result<own<fields>, $26>
[method]fields.get func(borrow<fields>, string) -> list<list<u8>>
[method]fields.has func(borrow<fields>, string) -> bool
[method]fields.set func(borrow<fields>, string, list<list<u8>>) -> result<_, $26>
[method]fields.delete func(borrow<fields>, string) -> result<_, $26>
[method]fields.get-and-delete func(borrow<fields>, string) -> result<list<list<u8>>, $26>
[method]fields.append func(borrow<fields>, string, list<u8>) -> result<_, $26>
[method]fields.copy-all func(borrow<fields>) -> list<tuple<string, list<u8>>>
[method]fields.clone func(borrow<fields>) -> own<fields>
[static]request.new func(own<fields>, option<stream<u8>>, future<result<option<own<fields>>, $12>>, option<own<request-options>>) -> tuple<own<request>, future<result<_, $12>>>
[method]request.get-method func(borrow<request>) -> $14
[method]request.set-method func(borrow<request>, $14) -> result
[method]request.get-path-with-query func(borrow<request>) -> option<string>
[method]request.set-path-with-query func(borrow<request>, option<string>) -> result
[method]request.get-scheme func(borrow<request>) -> option<variant { HTTP, HTTPS, other(string) }>
[method]request.set-scheme func(borrow<request>, option<variant { HTTP, HTTPS, other(string) }>) -> result
[method]request.get-authority func(borrow<request>) -> option<string>
[method]request.set-authority func(borrow<request>, option<string>) -> result
[method]request.get-options func(borrow<request>) -> option<own<request-options>>
[method]request.get-headers func(borrow<request>) -> own<fields>
[static]request.consume-body func(own<request>, future<result<_, $12>>) -> tuple<stream<u8>, future<result<option<own<fields>>, $12>>>
[constructor]request-options func() -> own<request-options>
[method]request-options.get-connect-timeout func(borrow<request-options>) -> option<u64>
[method]request-options.set-connect-timeout func(borrow<request-options>, option<u64>) -> result<_, $27>
[method]request-options.get-first-byte-timeout func(borrow<request-options>) -> option<u64>
[method]request-options.set-first-byte-timeout func(borrow<request-options>, option<u64>) -> result<_, $27>
[method]request-options.get-between-bytes-timeout func(borrow<request-options>) -> option<u64>
[method]request-options.set-between-bytes-timeout func(borrow<request-options>, option<u64>) -> result<_, $27>
[method]request-options.clone func(borrow<request-options>) -> own<request-options>
[static]response.new func(own<fields>, option<stream<u8>>, future<result<option<own<fields>>, $12>>) -> tuple<own<response>, future<result<_, $12>>>
[method]response.get-status-code func(borrow<response>) -> u16
[method]response.set-status-code func(borrow<response>, u16) -> result
[method]response.get-headers func(borrow<response>) -> own<fields>
[static]response.consume-body func(own<response>, future<result<_, $12>>) -> tuple<stream<u8>, future<result<option<own<fields>>, $12>>>
`,
  "wasi:io/error@0.2": `
[method]error.to-debug-string func(borrow<error>) -> string
`,
  "wasi:io/poll@0.2": `
[method]pollable.ready func(borrow<pollable>) -> bool
[method]pollable.block func(borrow<pollable>)
poll func(list<borrow<pollable>>) -> list<u32>
`,
  "wasi:io/streams@0.2": `
[method]input-stream.read func(borrow<input-stream>, u64) -> result<list<u8>, $15>
[method]input-stream.blocking-read func(borrow<input-stream>, u64) -> result<list<u8>, $15>
[method]input-stream.skip func(borrow<input-stream>, u64) -> result<u64, $15>
[method]input-stream.blocking-skip func(borrow<input-stream>, u64) -> result<u64, $15>
[method]input-stream.subscribe func(borrow<input-stream>) -> own<pollable>
[method]output-stream.check-write func(borrow<output-stream>) -> result<u64, $15>
[method]output-stream.write func(borrow<output-stream>, list<u8>) -> result<_, $15>
[method]output-stream.blocking-write-and-flush func(borrow<output-stream>, list<u8>) -> result<_, $15>
[method]output-stream.flush func(borrow<output-stream>) -> result<_, $15>
[method]output-stream.blocking-flush func(borrow<output-stream>) -> result<_, $15>
[method]output-stream.subscribe func(borrow<output-stream>) -> own<pollable>
[method]output-stream.write-zeroes func(borrow<output-stream>, u64) -> result<_, $15>
[method]output-stream.blocking-write-zeroes-and-flush func(borrow<output-stream>, u64) -> result<_, $15>
[method]output-stream.splice func(borrow<output-stream>, borrow<input-stream>, u64) -> result<u64, $15>
[method]output-stream.blocking-splice func(borrow<output-stream>, borrow<input-stream>, u64) -> result<u64, $15>
`,
  "wasi:random/insecure-seed@0.2": `
insecure-seed func() -> tuple<u64, u64>
`,
  "wasi:random/insecure-seed@0.3.0": `
get-insecure-seed func() -> tuple<u64, u64>
`,
  "wasi:random/insecure@0.2": `
get-insecure-random-bytes func(u64) -> list<u8>
get-insecure-random-u64 func() -> u64
`,
  "wasi:random/insecure@0.3.0": `
get-insecure-random-bytes func(u64) -> list<u8>
get-insecure-random-u64 func() -> u64
`,
  "wasi:random/random@0.2": `
get-random-bytes func(u64) -> list<u8>
get-random-u64 func() -> u64
`,
  "wasi:random/random@0.3.0": `
get-random-bytes func(u64) -> list<u8>
get-random-u64 func() -> u64
`,
  "wasi:sockets/instance-network@0.2": `
instance-network func() -> own<network>
`,
  "wasi:sockets/ip-name-lookup@0.2": `
[method]resolve-address-stream.resolve-next-address func(borrow<resolve-address-stream>) -> result<option<$16>, $17>
[method]resolve-address-stream.subscribe func(borrow<resolve-address-stream>) -> own<pollable>
resolve-addresses func(borrow<network>, string) -> result<own<resolve-address-stream>, $17>
`,
  "wasi:sockets/ip-name-lookup@0.3.0": `
resolve-addresses async func(string) -> result<list<$16>, $28>
`,
  "wasi:sockets/network@0.2": `
network-error-code func(borrow<error>) -> option<$17>
`,
  "wasi:sockets/tcp-create-socket@0.2": `
create-tcp-socket func(enum { ipv4, ipv6 }) -> result<own<tcp-socket>, $17>
`,
  "wasi:sockets/tcp@0.2": `
[method]tcp-socket.start-bind func(borrow<tcp-socket>, borrow<network>, variant { ipv4($18), ipv6($19) }) -> result<_, $17>
[method]tcp-socket.finish-bind func(borrow<tcp-socket>) -> result<_, $17>
[method]tcp-socket.start-connect func(borrow<tcp-socket>, borrow<network>, variant { ipv4($18), ipv6($19) }) -> result<_, $17>
[method]tcp-socket.finish-connect func(borrow<tcp-socket>) -> result<tuple<own<input-stream>, own<output-stream>>, $17>
[method]tcp-socket.start-listen func(borrow<tcp-socket>) -> result<_, $17>
[method]tcp-socket.finish-listen func(borrow<tcp-socket>) -> result<_, $17>
[method]tcp-socket.accept func(borrow<tcp-socket>) -> result<tuple<own<tcp-socket>, own<input-stream>, own<output-stream>>, $17>
[method]tcp-socket.local-address func(borrow<tcp-socket>) -> result<variant { ipv4($18), ipv6($19) }, $17>
[method]tcp-socket.remote-address func(borrow<tcp-socket>) -> result<variant { ipv4($18), ipv6($19) }, $17>
[method]tcp-socket.is-listening func(borrow<tcp-socket>) -> bool
[method]tcp-socket.address-family func(borrow<tcp-socket>) -> enum { ipv4, ipv6 }
[method]tcp-socket.set-listen-backlog-size func(borrow<tcp-socket>, u64) -> result<_, $17>
[method]tcp-socket.keep-alive-enabled func(borrow<tcp-socket>) -> result<bool, $17>
[method]tcp-socket.set-keep-alive-enabled func(borrow<tcp-socket>, bool) -> result<_, $17>
[method]tcp-socket.keep-alive-idle-time func(borrow<tcp-socket>) -> result<u64, $17>
[method]tcp-socket.set-keep-alive-idle-time func(borrow<tcp-socket>, u64) -> result<_, $17>
[method]tcp-socket.keep-alive-interval func(borrow<tcp-socket>) -> result<u64, $17>
[method]tcp-socket.set-keep-alive-interval func(borrow<tcp-socket>, u64) -> result<_, $17>
[method]tcp-socket.keep-alive-count func(borrow<tcp-socket>) -> result<u32, $17>
[method]tcp-socket.set-keep-alive-count func(borrow<tcp-socket>, u32) -> result<_, $17>
[method]tcp-socket.hop-limit func(borrow<tcp-socket>) -> result<u8, $17>
[method]tcp-socket.set-hop-limit func(borrow<tcp-socket>, u8) -> result<_, $17>
[method]tcp-socket.receive-buffer-size func(borrow<tcp-socket>) -> result<u64, $17>
[method]tcp-socket.set-receive-buffer-size func(borrow<tcp-socket>, u64) -> result<_, $17>
[method]tcp-socket.send-buffer-size func(borrow<tcp-socket>) -> result<u64, $17>
[method]tcp-socket.set-send-buffer-size func(borrow<tcp-socket>, u64) -> result<_, $17>
[method]tcp-socket.subscribe func(borrow<tcp-socket>) -> own<pollable>
[method]tcp-socket.shutdown func(borrow<tcp-socket>, enum { receive, send, both }) -> result<_, $17>
`,
  "wasi:sockets/types@0.3.0": `
[static]tcp-socket.create func(enum { ipv4, ipv6 }) -> result<own<tcp-socket>, $29>
[method]tcp-socket.bind func(borrow<tcp-socket>, variant { ipv4($18), ipv6($19) }) -> result<_, $29>
[method]tcp-socket.connect async func(borrow<tcp-socket>, variant { ipv4($18), ipv6($19) }) -> result<_, $29>
[method]tcp-socket.listen func(borrow<tcp-socket>) -> result<stream<own<tcp-socket>>, $29>
[method]tcp-socket.send func(borrow<tcp-socket>, stream<u8>) -> future<result<_, $29>>
[method]tcp-socket.receive func(borrow<tcp-socket>) -> tuple<stream<u8>, future<result<_, $29>>>
[method]tcp-socket.get-local-address func(borrow<tcp-socket>) -> result<variant { ipv4($18), ipv6($19) }, $29>
[method]tcp-socket.get-remote-address func(borrow<tcp-socket>) -> result<variant { ipv4($18), ipv6($19) }, $29>
[method]tcp-socket.get-is-listening func(borrow<tcp-socket>) -> bool
[method]tcp-socket.get-address-family func(borrow<tcp-socket>) -> enum { ipv4, ipv6 }
[method]tcp-socket.set-listen-backlog-size func(borrow<tcp-socket>, u64) -> result<_, $29>
[method]tcp-socket.get-keep-alive-enabled func(borrow<tcp-socket>) -> result<bool, $29>
[method]tcp-socket.set-keep-alive-enabled func(borrow<tcp-socket>, bool) -> result<_, $29>
[method]tcp-socket.get-keep-alive-idle-time func(borrow<tcp-socket>) -> result<u64, $29>
[method]tcp-socket.set-keep-alive-idle-time func(borrow<tcp-socket>, u64) -> result<_, $29>
[method]tcp-socket.get-keep-alive-interval func(borrow<tcp-socket>) -> result<u64, $29>
[method]tcp-socket.set-keep-alive-interval func(borrow<tcp-socket>, u64) -> result<_, $29>
[method]tcp-socket.get-keep-alive-count func(borrow<tcp-socket>) -> result<u32, $29>
[method]tcp-socket.set-keep-alive-count func(borrow<tcp-socket>, u32) -> result<_, $29>
[method]tcp-socket.get-hop-limit func(borrow<tcp-socket>) -> result<u8, $29>
[method]tcp-socket.set-hop-limit func(borrow<tcp-socket>, u8) -> result<_, $29>
[method]tcp-socket.get-receive-buffer-size func(borrow<tcp-socket>) -> result<u64, $29>
[method]tcp-socket.set-receive-buffer-size func(borrow<tcp-socket>, u64) -> result<_, $29>
[method]tcp-socket.get-send-buffer-size func(borrow<tcp-socket>) -> result<u64, $29>
[method]tcp-socket.set-send-buffer-size func(borrow<tcp-socket>, u64) -> result<_, $29>
[static]udp-socket.create func(enum { ipv4, ipv6 }) -> result<own<udp-socket>, $29>
[method]udp-socket.bind func(borrow<udp-socket>, variant { ipv4($18), ipv6($19) }) -> result<_, $29>
[method]udp-socket.connect func(borrow<udp-socket>, variant { ipv4($18), ipv6($19) }) -> result<_, $29>
[method]udp-socket.disconnect func(borrow<udp-socket>) -> result<_, $29>
[method]udp-socket.send async func(borrow<udp-socket>, list<u8>, option<variant { ipv4($18), ipv6($19) }>) -> result<_, $29>
[method]udp-socket.receive async func(borrow<udp-socket>) -> result<tuple<list<u8>, variant { ipv4($18), ipv6($19) }>, $29>
[method]udp-socket.get-local-address func(borrow<udp-socket>) -> result<variant { ipv4($18), ipv6($19) }, $29>
[method]udp-socket.get-remote-address func(borrow<udp-socket>) -> result<variant { ipv4($18), ipv6($19) }, $29>
[method]udp-socket.get-address-family func(borrow<udp-socket>) -> enum { ipv4, ipv6 }
[method]udp-socket.get-unicast-hop-limit func(borrow<udp-socket>) -> result<u8, $29>
[method]udp-socket.set-unicast-hop-limit func(borrow<udp-socket>, u8) -> result<_, $29>
[method]udp-socket.get-receive-buffer-size func(borrow<udp-socket>) -> result<u64, $29>
[method]udp-socket.set-receive-buffer-size func(borrow<udp-socket>, u64) -> result<_, $29>
[method]udp-socket.get-send-buffer-size func(borrow<udp-socket>) -> result<u64, $29>
[method]udp-socket.set-send-buffer-size func(borrow<udp-socket>, u64) -> result<_, $29>
`,
  "wasi:sockets/udp-create-socket@0.2": `
create-udp-socket func(enum { ipv4, ipv6 }) -> result<own<udp-socket>, $17>
`,
  "wasi:sockets/udp@0.2": `
[method]udp-socket.start-bind func(borrow<udp-socket>, borrow<network>, variant { ipv4($18), ipv6($19) }) -> result<_, $17>
[method]udp-socket.finish-bind func(borrow<udp-socket>) -> result<_, $17>
[method]udp-socket.stream func(borrow<udp-socket>, option<variant { ipv4($18), ipv6($19) }>) -> result<tuple<own<incoming-datagram-stream>, own<outgoing-datagram-stream>>, $17>
[method]udp-socket.local-address func(borrow<udp-socket>) -> result<variant { ipv4($18), ipv6($19) }, $17>
[method]udp-socket.remote-address func(borrow<udp-socket>) -> result<variant { ipv4($18), ipv6($19) }, $17>
[method]udp-socket.address-family func(borrow<udp-socket>) -> enum { ipv4, ipv6 }
[method]udp-socket.unicast-hop-limit func(borrow<udp-socket>) -> result<u8, $17>
[method]udp-socket.set-unicast-hop-limit func(borrow<udp-socket>, u8) -> result<_, $17>
[method]udp-socket.receive-buffer-size func(borrow<udp-socket>) -> result<u64, $17>
[method]udp-socket.set-receive-buffer-size func(borrow<udp-socket>, u64) -> result<_, $17>
[method]udp-socket.send-buffer-size func(borrow<udp-socket>) -> result<u64, $17>
[method]udp-socket.set-send-buffer-size func(borrow<udp-socket>, u64) -> result<_, $17>
[method]udp-socket.subscribe func(borrow<udp-socket>) -> own<pollable>
[method]incoming-datagram-stream.receive func(borrow<incoming-datagram-stream>, u64) -> result<list<record { data: list<u8>, remote-address: variant { ipv4($18), ipv6($19) } }>, $17>
[method]incoming-datagram-stream.subscribe func(borrow<incoming-datagram-stream>) -> own<pollable>
[method]outgoing-datagram-stream.check-send func(borrow<outgoing-datagram-stream>) -> result<u64, $17>
[method]outgoing-datagram-stream.send func(borrow<outgoing-datagram-stream>, list<record { data: list<u8>, remote-address: option<variant { ipv4($18), ipv6($19) }> }>) -> result<u64, $17>
[method]outgoing-datagram-stream.subscribe func(borrow<outgoing-datagram-stream>) -> own<pollable>
`,
};
