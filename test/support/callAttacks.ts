/** A call with something to hide, and the ways in which another call of the same user looks for it. */

const arm = process.arch === "arm64"

/** What a call hides in its environment, its memory and its descriptors. */
export const HIDDEN = "CANARYCALL0123456789"
/** Its reverse, so that no command line of an attack holds what it looks for. */
const NEEDLE = Array.from(HIDDEN).reverse().join("")

/**
 * The call with the secret, in Perl: it has it in its memory, its environment and on descriptor 3, listens on abstract names, and says on its
 * output what it is told. It ends with its input.
 */
export const VICTIM = [
  "use Socket;",
  "$| = 1;",
  'open(my $given, "<&=", 3); $secret = <$given>;',
  'for my $name (qw(HUP INT QUIT USR1 USR2 ALRM TERM IO WINCH CONT URG CHLD PIPE)) { $SIG{$name} = sub { print "signal $name\\n" } }',
  "socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un(qq(\\0$ARGV[0]))); listen(S, 5);",
  "socket(D, AF_UNIX, SOCK_DGRAM, 0); bind(D, pack_sockaddr_un(qq(\\0$ARGV[0]-datagrams)));",
  'print "ready $$\\n";',
  "while (1) { my $in = ''; vec($in, 0, 1) = 1; vec($in, fileno(S), 1) = 1; vec($in, fileno(D), 1) = 1;",
  "  select($in, undef, undef, undef) >= 0 or next;",
  '  if (vec($in, fileno(S), 1)) { accept(C, S); close C; print "connection\\n" }',
  '  if (vec($in, fileno(D), 1)) { recv(D, my $text, 100, 0); print "datagram\\n" }',
  "  last if vec($in, 0, 1) && sysread(STDIN, my $byte, 1) == 0 }",
  'print "ended\\n";'
].join("\n")

/** A way, as an argument list; it prints TAKEN when it gets something. */
export type Attack = readonly [name: string, program: string, ...args: ReadonlyArray<string>]

const sh = (name: string, script: string): Attack => [name, "/bin/sh", "-c", script]
const perl = (name: string, script: string): Attack => [name, "/usr/bin/perl", "-e", script]
/** A system call that must not answer well. */
const call = (name: string, x64: number, arm64: number, ...args: ReadonlyArray<string | number>): Attack =>
  perl(
    name,
    `my $buffer = "\\0" x 4096; $! = 0; print "TAKEN" if syscall(${arm ? arm64 : x64}, ${args.join(", ")}) >= 0`
  )

const read = (name: string, path: string) => sh(name, `head -c 1 ${path} 2>/dev/null | grep -q . && echo TAKEN`)
const link = (name: string, path: string) => sh(name, `readlink ${path} >/dev/null 2>&1 && echo TAKEN`)
const write = (name: string, path: string, text: string) =>
  sh(name, `(echo ${text} > ${path}) 2>/dev/null && echo TAKEN`)

/** Ways to the memory, the environment, the descriptors and the places of process `pid`. */
export const memoryAttacks = (pid: number): ReadonlyArray<Attack> => [
  sh("environ", `tr '\\0' '\\n' < /proc/${pid}/environ 2>/dev/null | rev | grep -q ${NEEDLE} && echo TAKEN`),
  sh("environ of the thread", `cat /proc/${pid}/task/${pid}/environ 2>/dev/null | grep -q . && echo TAKEN`),
  read("mem", `/proc/${pid}/mem`),
  perl("mem by its map", `open(M, "</proc/${pid}/maps") and print "TAKEN"`),
  perl("mem to write", `open(M, "+</proc/${pid}/mem") and print "TAKEN"`),
  perl("mem of the thread", `open(M, "</proc/${pid}/task/${pid}/mem") and print "TAKEN"`),
  read("smaps", `/proc/${pid}/smaps`),
  read("smaps_rollup", `/proc/${pid}/smaps_rollup`),
  read("numa_maps", `/proc/${pid}/numa_maps`),
  read("pagemap", `/proc/${pid}/pagemap`),
  read("auxv", `/proc/${pid}/auxv`),
  read("syscall", `/proc/${pid}/syscall`),
  read("stack", `/proc/${pid}/stack`),
  read("io", `/proc/${pid}/io`),
  read("personality", `/proc/${pid}/personality`),
  sh("map_files", `ls /proc/${pid}/map_files/* >/dev/null 2>&1 && echo TAKEN`),
  read("timers", `/proc/${pid}/timers`),
  read("the secrets' descriptor", `/proc/${pid}/fd/3`),
  read("its output", `/proc/${pid}/fd/1`),
  write("words on its output", `/proc/${pid}/fd/1`, "forged"),
  link("where a descriptor leads", `/proc/${pid}/fd/3`),
  link("its folder", `/proc/${pid}/cwd`),
  link("its root", `/proc/${pid}/root`),
  link("its program", `/proc/${pid}/exe`),
  link("its namespaces", `/proc/${pid}/ns/net`),
  sh("through its root", `ls /proc/${pid}/root/ >/dev/null 2>&1 && echo TAKEN`),
  sh("through its folder", `ls /proc/${pid}/cwd/ >/dev/null 2>&1 && echo TAKEN`),
  call("ptrace attach", 101, 117, 16, pid, 0, 0),
  call("ptrace seize", 101, 117, 0x4206, pid, 0, 0),
  perl(
    "process_vm_readv",
    `my $to = "\\0" x 8; my $local = pack("PQ", $to, 8); my $remote = pack("QQ", 0x400000, 8); print "TAKEN" if syscall(${arm ? 270 : 310}, ${pid}, $local, 1, $remote, 1, 0) >= 0`
  ),
  perl(
    "process_vm_writev",
    `my $from = "x" x 8; my $local = pack("PQ", $from, 8); my $remote = pack("QQ", 0x400000, 8); print "TAKEN" if syscall(${arm ? 271 : 311}, ${pid}, $local, 1, $remote, 1, 0) >= 0`
  ),
  perl("pidfd_getfd", `my $p = syscall(434, ${pid}, 0); print "TAKEN" if $p >= 0 && syscall(438, $p, 3, 0) >= 0`),
  perl(
    "setns by a pidfd",
    `my $p = syscall(434, ${pid}, 0); print "TAKEN" if $p >= 0 && syscall(${arm ? 268 : 308}, $p, 0x10000000) >= 0`
  ),
  perl(
    "process_madvise",
    `my $p = syscall(434, ${pid}, 0); my $v = pack("QQ", 0x400000, 4096); print "TAKEN" if $p >= 0 && syscall(440, $p, $v, 1, 20, 0) >= 0`
  ),
  call("kcmp of descriptors", 312, 272, "$$", pid, 0, 1, 1),
  call("kcmp of memory", 312, 272, "$$", pid, 1, 0, 0),
  perl(
    "get_robust_list",
    `my ($h, $l) = ("\\0" x 8, "\\0" x 8); print "TAKEN" if syscall(${arm ? 100 : 274}, ${pid}, $h, $l) >= 0`
  ),
  perl(
    "perf_event_open",
    `my $a = pack("LLQQQQL", 1, 112, 0, 0, 0, 0, 0) . "\\0" x 68; print "TAKEN" if syscall(${arm ? 241 : 298}, $a, ${pid}, -1, -1, 0) >= 0`
  ),
  perl(
    "move_pages",
    `my $p = pack("Q", 0x400000); my $s = "\\0" x 8; print "TAKEN" if syscall(${arm ? 239 : 279}, ${pid}, 1, $p, 0, $s, 0) >= 0`
  )
]

const SIGNALS = { HUP: 1, USR1: 10, QUIT: 3, STOP: 19, KILL: 9 }

/** Ways to reach a socket of process `pid` that has an abstract `name`, or to send it a signal; the last one ends it. */
export const signalAttacks = (pid: number, name: string): ReadonlyArray<Attack> => [
  perl(
    "a connection to its abstract name",
    `use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); print "TAKEN" if connect(S, pack_sockaddr_un("\\0${name}"))`
  ),
  perl(
    "a datagram to its abstract name",
    `use Socket; socket(S, AF_UNIX, SOCK_DGRAM, 0); print "TAKEN" if send(S, "x", 0, pack_sockaddr_un("\\0${name}-datagrams"))`
  ),
  perl(
    "a datagram socket that connects there",
    `use Socket; socket(S, AF_UNIX, SOCK_DGRAM, 0); print "TAKEN" if connect(S, pack_sockaddr_un("\\0${name}-datagrams"))`
  ),
  call("whether it is there", 62, 129, pid, 0),
  call("its whole group", 62, 129, -pid, 10),
  call("tkill", 200, 130, pid, 10),
  call("tgkill", 234, 131, pid, pid, 10),
  perl(
    "rt_sigqueueinfo",
    `my $i = pack("lll", 10, 0, -1) . "\\0" x 116; print "TAKEN" if syscall(${arm ? 138 : 129}, ${pid}, 10, $i) >= 0`
  ),
  perl(
    "rt_tgsigqueueinfo",
    `my $i = pack("lll", 10, 0, -1) . "\\0" x 116; print "TAKEN" if syscall(${arm ? 240 : 297}, ${pid}, ${pid}, 10, $i) >= 0`
  ),
  perl(
    "pidfd_send_signal",
    `my $p = syscall(434, ${pid}, 0); print "TAKEN" if $p >= 0 && syscall(424, $p, 10, 0, 0) >= 0`
  ),
  // These two answer well whoever gets the signal; what the call says it got counts.
  perl("everyone", `$SIG{USR1} = "IGNORE"; kill "USR1", -1; sleep 0`),
  perl(
    "the owner of a socket",
    `use Socket; use Fcntl; socketpair(A, B, AF_UNIX, SOCK_STREAM, 0); fcntl(A, 8, ${pid}); fcntl(A, F_SETFL, 0x2000); syswrite B, "x"`
  ),
  ...Object.entries(SIGNALS).map(([signal, number]) => call(`kill with ${signal}`, 62, 129, pid, number))
]
