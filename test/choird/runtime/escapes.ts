const arm = process.arch === "arm64"

/** A way out: a command that prints ESCAPED when it gets through; where one error is the right one, it is named. */
export type Escape = readonly [name: string, command: string, expected?: RegExp]

/** A system call by its numbers, from a program that every Debian has. */
const call = (x64: number, arm64: number, ...args: ReadonlyArray<string>) =>
  `perl -e '@a = (${args.join(", ")}); $r = syscall(${arm ? arm64 : x64}, @a); print $r >= 0 ? "ESCAPED" : "errno " . ($!+0)'`

/** Ways out that are tried of a sandbox and of a container alike. @param agent the agent's pid inside. */
const everywhere = (home: string, agent: number): ReadonlyArray<Escape> => [
  ["write core_pattern", "echo '|/tmp/x' > /proc/sys/kernel/core_pattern && echo ESCAPED", /Read-only/u],
  ["write a sysctl of the network", "echo 1 > /proc/sys/net/ipv4/ip_forward && echo ESCAPED", /Read-only/u],
  ["pull the system request key", "echo h > /proc/sysrq-trigger && echo ESCAPED", /cannot create/u],
  ["mount", call(165, 40, '"t"', '"/tmp"', '"tmpfs"', "0", "0"), /errno 1$/u],
  ["umount /proc/sys", call(166, 39, '"/proc/sys"', "2"), /errno 1$/u],
  ["remount the root writable", "mount -o remount,rw / && echo ESCAPED"],
  ["open the new mount interface", call(430, 430, '"tmpfs"', "0"), /errno 1$/u],
  ["unshare a user namespace", call(272, 97, "0x10000000"), /errno 1$/u],
  ["clone a user namespace", call(56, 220, "0x10000011", "0", "0", "0", "0"), /errno 1$/u],
  ["setns", call(308, 268, "0", "0"), /errno 1$/u],
  ["chroot", call(161, 51, '"/tmp"'), /errno 1$/u],
  ["pivot_root", call(155, 41, '"/tmp"', '"/tmp"'), /errno 1$/u],
  ["ptrace the agent", call(101, 117, "16", String(agent), "0", "0"), /errno 1$/u],
  ["read the agent's memory by a call", call(310, 270, String(agent), "0", "0", "0", "0", "0"), /errno 1$/u],
  ["read the agent's memory by /proc", `head -c 1 /proc/${agent}/mem && echo ESCAPED`, /Permission denied/u],
  ["read the agent's environment", `cat /proc/${agent}/environ && echo ESCAPED`, /Permission denied/u],
  ["read the Node that the agent runs", "head -c 4 /opt/choir/bin/node && echo ESCAPED", /Permission denied/u],
  ["make it readable", "chmod 755 /opt/choir/bin/node && echo ESCAPED", /Read-only/u],
  ["keyctl", call(250, 219, "0", "-3", "0"), /errno 1$/u],
  ["add_key", call(248, 217, '"user"', '"a"', '"b"', "1", "-3"), /errno 1$/u],
  ["bpf", call(321, 280, "0", "0", "0"), /errno 1$/u],
  ["perf_event_open", call(298, 241, "0", "0", "-1", "-1", "0"), /errno 1$/u],
  ["userfaultfd", call(323, 282, "0"), /errno 1$/u],
  ["load a kernel module", call(313, 273, "0", '""', "0"), /errno 1$/u],
  ["kexec", call(246, 104, "0", "0", "0", "0"), /errno 1$/u],
  ["read the kernel log", call(103, 116, "10", "0", "0"), /errno 1$/u],
  ["reboot", call(169, 142, "0", "0", "0", "0"), /errno 1$/u],
  ["set the clock", "date -s 2001-01-01 && echo ESCAPED"],
  ["open a file by its handle", call(304, 265, "0", "0", "0"), /errno 1$/u],
  ["a raw socket", call(41, 198, "2", "3", "1"), /errno 1$/u],
  ["make a device", "mknod /tmp/mem c 1 1 && echo ESCAPED", /not permitted/u],
  ["read memory of the machine", "head -c 1 /dev/mem && echo ESCAPED", /No such file/u],
  ["read a disk", "head -c 1 /dev/vda || head -c 1 /dev/sda && echo ESCAPED", /No such file/u],
  ["see choird's home", `ls ${home} && echo ESCAPED`, /No such file/u],
  ["the socket of Docker", "ls /var/run/docker.sock /run/docker.sock && echo ESCAPED", /No such file/u],
  ["write /usr", "touch /usr/bin/x && echo ESCAPED", /Read-only/u],
  ["write the root", "touch /x && echo ESCAPED", /Read-only/u],
  ["write /etc", "echo x >> /etc/passwd && echo ESCAPED", /Read-only|Permission denied/u],
  ["write /choir", "touch /choir/x && echo ESCAPED", /Read-only/u],
  ["replace the bundle", "echo x > /opt/choir/choir-agent.js && echo ESCAPED", /Read-only|Permission denied/u],
  ["replace the socket", "rm /run/choir/choird.sock && echo ESCAPED", /Read-only/u],
  ["kill a process outside", `kill -0 ${process.pid} && echo ESCAPED`, /No such process/u],
  ["see processes outside", "[ $(ls -d /proc/[0-9]* | wc -l) -gt 12 ] && echo ESCAPED"],
  ["gain capabilities", "grep Cap /proc/self/status | grep -v 0000000000000000 && echo ESCAPED"],
  ["new privileges", "grep -q 'NoNewPrivs:.1' /proc/self/status || echo ESCAPED"],
  ["run without a filter", "grep -q 'Seccomp:.2' /proc/self/status || echo ESCAPED"],
  ["dump core", "[ $(ulimit -Hc) = 0 ] || echo ESCAPED"]
]

/** Ways out of a sandbox, whose agent is its second process. */
export const escapes = (home: string): ReadonlyArray<Escape> => [
  ...everywhere(home, 2),
  ["list the agent's descriptors", "ls /proc/2/fd && echo ESCAPED", /Permission denied/u],
  ["io_uring", call(425, 425, "1", "0"), /errno 1$/u],
  ["personality", call(135, 92, "0x0040000"), /errno 1$/u],
  ["a packet socket", call(41, 198, "17", "3", "0"), /errno 97$/u],
  ["a vsock socket", call(41, 198, "40", "1", "0"), /errno 97$/u],
  ["a crypto socket", call(41, 198, "38", "5", "0"), /errno 97$/u],
  ["push keys into a terminal", call(16, 29, "0", "0x5412", "0"), /errno 1$/u],
  ["change the agent's limits", call(302, 261, "2", "7", "0", "0"), /errno 1$/u],
  ["real-time priority", call(144, 119, "0", "1", 'pack("i", 10)'), /errno 1$/u],
  ["raise its own limits", "prlimit --pid $$ --nproc=100000 && echo ESCAPED", /not permitted/u],
  ["read shadow", "cat /etc/shadow && echo ESCAPED", /No such file/u],
  ["see root's home", "ls /root/. && echo ESCAPED", /No such file/u],
  ["see homes", "ls /home/. && echo ESCAPED", /No such file/u],
  ["control groups", "ls /sys/fs/cgroup && echo ESCAPED", /No such file/u],
  ["write /dev", "touch /dev/x && echo ESCAPED", /Read-only/u],
  ["gain by a setuid program", "su -c true && echo ESCAPED"],
  ["a setuid file of its own", "cp /usr/bin/id /tmp/id && chmod 4755 /tmp/id && echo ESCAPED", /not permitted/u],
  ["the host's init", "tr '\\0' ' ' < /proc/1/cmdline | grep -q ^/opt/choir/init/sh || echo ESCAPED"],
  ...["environ", "maps", "syscall"].map((file): Escape => [
    `read ${file} of the first process`,
    `cat /proc/1/${file} && echo ESCAPED`,
    /Permission denied/u
  ]),
  ["read the first process's memory", "head -c 1 /proc/1/mem && echo ESCAPED", /Permission denied/u],
  ["write the first process's memory", ": >> /proc/1/mem && echo ESCAPED", /Permission denied/u],
  ["read the shell that the first process runs", "head -c 4 /opt/choir/init/sh && echo ESCAPED", /Permission denied/u]
]

/** Ways out of a container. What Docker's filter lets through is left out: it is the engine's own. */
export const containerEscapes = (home: string, agent: number): ReadonlyArray<Escape> => [
  ...everywhere(home, agent),
  ["write a setting of the kernel", "echo 1 > /sys/kernel/uevent_helper && echo ESCAPED"],
  ["write a control group", "mkdir /sys/fs/cgroup/memory/x /sys/fs/cgroup/x; [ -d /sys/fs/cgroup/x ] && echo ESCAPED"],
  [
    "open the agent's descriptors",
    `for fd in /proc/${agent}/fd/*; do readlink $fd || head -c 1 $fd && echo ESCAPED; done`
  ],
  ["see what the agent has mapped", `cat /proc/${agent}/maps && echo ESCAPED`, /Permission denied/u],
  ["read the environment of the first process", "cat /proc/1/environ && echo ESCAPED", /Permission denied/u],
  [
    "open an inspector by SIGUSR1",
    `kill -USR1 ${agent}; for i in 1 2 3 4 5; do sleep 0.2; bash -c '</dev/tcp/127.0.0.1/9229' && echo ESCAPED; done`
  ],
  ["a packet socket", call(41, 198, "17", "3", "0"), /errno 1$/u],
  ["raise its own limits", "prlimit --pid $$ --core=1000 && echo ESCAPED", /not permitted/u],
  ["become another user", "setpriv --reuid=1000 true && echo ESCAPED", /not permitted/u],
  ["read the kernel's memory", "head -c 1 /proc/kcore && echo ESCAPED || ls -l /proc/kcore"],
  ["be root of the host", "grep -qE '^ *0 +0 ' /proc/self/uid_map && echo ESCAPED"],
  ["run a program from /run", "cp /usr/bin/true /run/true && /run/true && echo ESCAPED", /Permission denied/u],
  ["another process's descriptor", call(438, 438, "0", "0", "0"), /errno (1|9)$/u],
  ["write the agent's memory by a call", call(311, 271, String(agent), "0", "0", "0", "0", "0"), /errno 1$/u],
  ["gain by a setuid program", "su -c true && echo ESCAPED"],
  [
    "find a device of the kernel",
    "for d in kmsg kvm net/tun fuse; do [ -e /dev/$d ] && echo ESCAPED $d; done; echo none",
    /^none$/u
  ],
  ["trace the kernel", '[ -n "$(ls -A /sys/kernel/debug /sys/kernel/tracing | grep -v :)" ] && echo ESCAPED'],
  ["read the timers of the machine", "grep -q . /proc/timer_list /proc/sched_debug /proc/keys && echo ESCAPED"],
  ["swap", call(167, 224, '"/tmp/x"', "0"), /errno 1$/u],
  ["account for processes", call(163, 89, "0"), /errno 1$/u]
]
