/**
 * The seccomp filter of a command that must reach nobody: it can open no socket of a network and none with a name, and can give no name to
 * those that it has or send to one. It does not depend on the sandbox's own filter, so that it holds in each runtime.
 */
import {
  ALLOW,
  ARCHITECTURE_AT,
  ARGUMENT_AT,
  ARGUMENT_HIGH_AT,
  AUDIT_ARCH,
  EPERM,
  ENOSYS,
  fail,
  ifAtLeast,
  ifEqual,
  KILL,
  load,
  NUMBER_AT,
  SOCKET,
  without,
  X32_FIRST,
  type Architecture
} from "./bpf.ts"

const ENETUNREACH = 101

const AF_UNIX = 1
const SOCK_STREAM = 1
/** SOCK_NONBLOCK and SOCK_CLOEXEC. */
const TYPE_FLAGS = 0o2004000

type Numbers = readonly [x64: number, arm64: number]

/** Calls that make a socket, or let one reach a name or be reached by it. A pair of connected sockets needs none of them. */
const NAMING: Readonly<Record<string, Numbers>> = {
  socket: [SOCKET.x64, SOCKET.arm64],
  connect: [42, 203],
  bind: [49, 200],
  listen: [50, 201],
  accept: [43, 202],
  accept4: [288, 242]
}

/** It would take a socket out of another process that has a network. */
const PIDFD_GETFD = 438

/** A ring does what it is asked past every filter; one that another process made could be handed over. */
const IO_URING = { io_uring_setup: 425, io_uring_enter: 426, io_uring_register: 427 }

const SOCKETPAIR = { x64: 53, arm64: 199 } as const
/**
 * A stream of the UNIX family is connected for good: neither sendto, sendmsg nor sendmmsg takes an address for it. A datagram
 * socket of a pair sends to any name.
 */
const onlyStreams = [
  load(ARGUMENT_AT(0)),
  ifEqual(AF_UNIX, 0, 3),
  load(ARGUMENT_AT(1)),
  without(TYPE_FLAGS),
  ifEqual(SOCK_STREAM, 1, 0),
  fail(ENETUNREACH),
  ALLOW
]

const SENDTO = { x64: 44, arm64: 206 } as const
/** The address is the fifth argument, and send() is the call without one. */
const noAddress = [
  load(ARGUMENT_AT(4)),
  ifEqual(0, 0, 2),
  load(ARGUMENT_HIGH_AT(4)),
  ifEqual(0, 1, 0),
  fail(ENETUNREACH),
  ALLOW
]

const forCall = (number: number, rows: ReadonlyArray<Buffer>) => [ifEqual(number, 0, rows.length), ...rows]

export const offlineFilterFor = (architecture: Architecture): Buffer => {
  const column = architecture === "x64" ? 0 : 1
  const rows = [
    [load(ARCHITECTURE_AT), ifEqual(AUDIT_ARCH[architecture], 1, 0), KILL],
    [load(NUMBER_AT)],
    architecture === "x64" ? [ifAtLeast(X32_FIRST, 0, 1), fail(EPERM)] : [],
    ...Object.values(NAMING).map((numbers) => forCall(numbers[column], [fail(ENETUNREACH)])),
    forCall(PIDFD_GETFD, [fail(EPERM)]),
    ...Object.values(IO_URING).map((number) => forCall(number, [fail(ENOSYS)])),
    forCall(SOCKETPAIR[architecture], onlyStreams),
    forCall(SENDTO[architecture], noAddress),
    [ALLOW]
  ]
  return Buffer.concat(rows.flat())
}
