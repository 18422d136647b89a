/**
 * The system calls that a sandbox may not make, as a classic BPF program for seccomp(2). It denies rather than allows: what
 * programs need changes with every libc, what leads out of a sandbox is a short list.
 */
import { Effect } from "effect"
import {
  ALLOW,
  ARCHITECTURE_AT,
  ARGUMENT_AT,
  AUDIT_ARCH,
  EPERM,
  ENOSYS,
  fail,
  ifAnyBit,
  ifAtLeast,
  ifEqual,
  KILL,
  load,
  NUMBER_AT,
  SOCKET,
  X32_FIRST,
  type Architecture
} from "#src/shared/program/bpf.ts"

/** Numbers of arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h; `null` where there is no such call. */
const DENIED: Readonly<Record<string, readonly [x64: number, arm64: number | null]>> = {
  // Mounts, namespaces and roots.
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  unshare: [272, 97],
  setns: [308, 268],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  open_tree_attr: [467, 467],
  // Other processes' memory, descriptors and secrets.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  pidfd_getfd: [438, 438],
  kcmp: [312, 272],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  open_by_handle_at: [304, 265],
  name_to_handle_at: [303, 264],
  fanotify_init: [300, 262],
  // Parts of the kernel with a long record of holes and no use for an agent.
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  personality: [135, 92],
  modify_ldt: [154, null],
  lookup_dcookie: [212, 18],
  vhangup: [153, 58],
  nfsservctl: [180, 42],
  uselib: [134, null],
  ustat: [136, null],
  sysfs: [139, null],
  _sysctl: [156, null],
  mbind: [237, 235],
  set_mempolicy: [238, 237],
  set_mempolicy_home_node: [450, 450],
  move_pages: [279, 239],
  migrate_pages: [256, 238],
  // The machine itself.
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  syslog: [103, 116],
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  adjtimex: [159, 171],
  clock_adjtime: [305, 266],
  iopl: [172, null],
  ioperm: [173, null]
}

/** An argument of a call that holds the mode of a file, and the one with the flags where the mode counts only beside some of them. */
interface ModeCall {
  readonly numbers: readonly [x64: number | null, arm64: number | null]
  readonly mode: number
  readonly flags?: number
}

/**
 * Calls that can give a file the setuid or setgid bit. Inside such a file does nothing, but on the host it is in the workspace and is
 * its user's, who for an ordinary choird is choird's own.
 */
const MODE_CALLS: ReadonlyArray<ModeCall> = [
  { numbers: [90, null], mode: 1 }, // chmod
  { numbers: [91, 52], mode: 1 }, // fchmod
  { numbers: [268, 53], mode: 2 }, // fchmodat
  { numbers: [452, 452], mode: 2 }, // fchmodat2
  { numbers: [85, null], mode: 1 }, // creat
  { numbers: [2, null], mode: 2, flags: 1 }, // open
  { numbers: [257, 56], mode: 3, flags: 2 }, // openat
  { numbers: [133, null], mode: 1 }, // mknod
  { numbers: [259, 33], mode: 2 }, // mknodat
  { numbers: [83, null], mode: 1 }, // mkdir
  { numbers: [258, 34], mode: 2 } // mkdirat
]
/** S_ISUID and S_ISGID. */
const SET_ID = 0o6000
/** O_CREAT and the bit that makes O_TMPFILE of O_DIRECTORY; without them the mode of an open is whatever the register held. */
const CREATES = 0o100 | 0o20000000

const CLONE3 = 435
const OPENAT2 = 437
const CLONE = { x64: 56, arm64: 220 } as const
/** Of another process it would change the limits, such as that of its files, or end it by that of its time. */
const PRLIMIT64 = { x64: 302, arm64: 261 } as const
const IOCTL = { x64: 16, arm64: 29 } as const
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const CLONE_NEW_ANY = 0x7e020000
const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK (which name lookup needs). */
const SOCKET_FAMILIES = [1, 2, 10, 16]

const EAFNOSUPPORT = 97

/** Denies a call that sets a bit of SET_ID. */
const modeRows = ({ flags, mode, numbers }: ModeCall, column: 0 | 1): ReadonlyArray<Buffer> => {
  const number = numbers[column]
  if (number === null) return []
  const look = [load(ARGUMENT_AT(mode)), ifAnyBit(SET_ID, 0, 1), fail(EPERM), ALLOW]
  const all = flags === undefined ? look : [load(ARGUMENT_AT(flags)), ifAnyBit(CREATES, 0, 3), ...look]
  return [ifEqual(number, 0, all.length), ...all]
}

/** The filter for one architecture: an array of `struct sock_filter`. */
export const filterFor = (architecture: Architecture): Buffer => {
  const column = architecture === "x64" ? 0 : 1
  const denied = Object.values(DENIED).flatMap((pair) => {
    const number = pair[column]
    return number === null ? [] : [ifEqual(number, 0, 1), fail(EPERM)]
  })
  const rows = [
    [load(ARCHITECTURE_AT), ifEqual(AUDIT_ARCH[architecture], 1, 0), KILL],
    [load(NUMBER_AT)],
    architecture === "x64" ? [ifAtLeast(X32_FIRST, 0, 1), fail(EPERM)] : [],
    denied,
    // What these are asked for lies behind a pointer. Programs fall back to clone and openat, whose arguments can be seen.
    [ifEqual(CLONE3, 0, 1), fail(ENOSYS), ifEqual(OPENAT2, 0, 1), fail(ENOSYS)],
    MODE_CALLS.flatMap((call) => modeRows(call, column)),
    [ifEqual(CLONE[architecture], 0, 4), load(ARGUMENT_AT(0)), ifAnyBit(CLONE_NEW_ANY, 0, 1), fail(EPERM), ALLOW],
    [ifEqual(PRLIMIT64[architecture], 0, 4), load(ARGUMENT_AT(0)), ifEqual(0, 1, 0), fail(EPERM), ALLOW],
    [ifEqual(IOCTL[architecture], 0, 5), load(ARGUMENT_AT(1)), ifEqual(TIOCSTI, 1, 0), ifEqual(TIOCLINUX, 0, 1)],
    [fail(EPERM), ALLOW],
    [ifEqual(SOCKET[architecture], 0, SOCKET_FAMILIES.length + 2), load(ARGUMENT_AT(0))],
    SOCKET_FAMILIES.map((family, index) => ifEqual(family, SOCKET_FAMILIES.length - index, 0)),
    [fail(EAFNOSUPPORT), ALLOW]
  ]
  return Buffer.concat(rows.flat())
}

/** The filter for this machine, or `undefined` where none was written, which `status` then says. */
export const hostFilter: Effect.Effect<Buffer | undefined> = Effect.sync(() =>
  process.arch === "x64" || process.arch === "arm64" ? filterFor(process.arch) : undefined
)
