/**
 * Hosts that are prepared wrongly, each in namespaces of its own, with mounts, limits, users and variables of its own, in which the built
 * programs run as they are (onWrongHost.ts).
 */
import { join } from "node:path"

/** A user that this machine does not have. */
export const STRANGER = 12_345

/** How choird ends on such a host. */
interface Refusal {
  readonly code: number
  readonly says: RegExp
  /** Only the database can say it, so that its engine is started before. */
  readonly byDatabase?: true
}

export interface WrongHost {
  /** What is wrong, as the name of a test. */
  readonly name: string
  /** Lines of a shell before choird starts. `$home` is its home, `$work` another folder, and `$STRANGER` a user that the machine lacks. */
  readonly prepare?: string
  /** Namespaces beside that of the mounts. */
  readonly unshare?: ReadonlyArray<string>
  /** The user, where it is not root. The home is given to it first. */
  readonly user?: number
  /** Variables beside PATH; `undefined` takes one out. */
  readonly env?: (place: {
    readonly home: string
    readonly work: string
  }) => Readonly<Record<string, string | undefined>>
  /** The command line after the program's name, `--home $home` by default. */
  readonly args?: (place: { readonly home: string; readonly work: string }) => ReadonlyArray<string>
  /** How it must end, or that it works and what it says beside that. */
  readonly expected: Refusal | { readonly works: true; readonly says?: RegExp }
  /** What `choirctl doctor` says there, where it is not what choird says. */
  readonly doctor?: RegExp
}

/** The hosts, and how Choir must meet each. */
export const WRONG_HOSTS: ReadonlyArray<WrongHost> = [
  {
    name: "has no HOME and no entry for the user, and CHOIR_HOME says where the home is",
    user: STRANGER,
    env: ({ home }) => ({ HOME: undefined, CHOIR_HOME: home }),
    args: () => [],
    expected: { works: true }
  },
  {
    name: "has no HOME and no entry for the user, and nothing says where the home is",
    user: STRANGER,
    env: () => ({ HOME: undefined }),
    args: () => [],
    expected: { code: 78, says: /home is unknown: HOME is not set.*--home or CHOIR_HOME/u }
  },
  {
    name: "has an empty HOME for a user without an entry",
    user: STRANGER,
    env: () => ({ HOME: "" }),
    args: () => [],
    expected: { code: 78, says: /home is unknown/u }
  },
  {
    name: "has no folder where TMPDIR says",
    env: ({ work }) => ({ TMPDIR: join(work, "gone") }),
    expected: { code: 78, says: /which TMPDIR names, does not exist. To fix it: mkdir -p .*gone/u }
  },
  {
    name: "has a TMPDIR that is read-only",
    prepare: `mkdir "$work/tmp"; mount -t tmpfs -o ro none "$work/tmp"`,
    env: ({ work }) => ({ TMPDIR: join(work, "tmp") }),
    expected: { code: 78, says: /which TMPDIR names, is on a disk that is read-only. To fix it: set TMPDIR/u }
  },
  {
    name: "has a TMPDIR that is full",
    prepare: `mkdir "$work/tmp"; mount -t tmpfs -o size=8k,nr_inodes=1 none "$work/tmp"`,
    env: ({ work }) => ({ TMPDIR: join(work, "tmp") }),
    expected: { code: 78, says: /is on a disk that is full. To fix it: free some space/u }
  },
  {
    name: "runs no programs in TMPDIR",
    prepare: `mkdir "$work/tmp"; mount -t tmpfs -o noexec none "$work/tmp"`,
    env: ({ work }) => ({ TMPDIR: join(work, "tmp") }),
    expected: { works: true }
  },
  {
    name: "has the home on a read-only disk",
    prepare: `mount --bind "$home" "$home"; mount -o remount,ro,bind "$home"`,
    expected: { code: 78, says: /read-only.*must be on a disk that choird's user may write to/u }
  },
  {
    name: "runs no programs in the home",
    prepare: `mount --bind "$home" "$home"; mount -o remount,noexec,bind "$home"`,
    expected: { works: true, says: /mounted noexec: tools of agents .* mount that disk with exec/u }
  },
  {
    name: "has the home on a full disk",
    prepare: `cp -a "$home" "$work/kept"; mount -t tmpfs -o size=1m,mode=700 none "$home"; rm -r "$work/kept/data"; cp -a "$work/kept/." "$home/"`,
    // How much room a database needs only its engine knows.
    expected: { code: 75, says: /ENOSPC.*Free some space on its disk/u, byDatabase: true },
    doctor: /fail +disk .* free on the disk of .*To fix it: .*delete other files on this disk/u
  },
  {
    name: "has a home whose path has 66 bytes",
    prepare: `mv "$home" "$(printf '%-66s' "$work/home" | tr ' ' x)"`,
    args: ({ work }) => ["--home", join(work, "home").padEnd(66, "x")],
    expected: { code: 78, says: /has 66 bytes, and that of a home at most 65.*choose a home with a shorter path/u }
  },
  {
    name: "has no room in /dev/shm",
    prepare: `mount -t tmpfs -o ro,size=4k none /dev/shm`,
    expected: { works: true }
  },
  {
    name: "has no /proc",
    prepare: `mount -t tmpfs none /proc`,
    expected: { code: 78, says: /\/proc is not mounted. To fix it: mount -t proc/u }
  },
  {
    name: "hides the processes of other users",
    unshare: ["--pid"],
    prepare: `mount -t proc -o hidepid=2 proc /proc`,
    user: STRANGER,
    expected: { works: true }
  },
  {
    name: "has no locale",
    env: () => ({ LANG: "C", LC_ALL: "xx_XX.garbage", LANGUAGE: ":" }),
    expected: { works: true }
  },
  {
    name: "has garbage for a time zone",
    env: () => ({ TZ: "Mars/Olympus" }),
    expected: {
      works: true,
      says: /TZ is \\?"Mars\/Olympus\\?", which is not the name of a time zone: times are in UTC/u
    }
  },
  {
    name: "has a umask that takes the owner's rights too",
    prepare: `rm -r "$home/data"; umask 0777`,
    expected: { works: true }
  },
  {
    name: "has a umask of nothing",
    prepare: `umask 0`,
    expected: { works: true }
  },
  {
    name: "lets a process open 128 files",
    prepare: `ulimit -n 128`,
    expected: { code: 78, says: /only 128 files open here, and choird needs 256. To fix it: ulimit -n 4096/u }
  },
  {
    name: "has a clock in 1970",
    env: () => ({
      NODE_OPTIONS: `--import=${join(import.meta.dirname, "movedClock.mjs")}`,
      CHOIR_TEST_CLOCK_MS: String(86_400_000 - Date.now())
    }),
    // It passes once the network is there, so that a supervisor tries again.
    expected: { code: 75, says: /clock of this host says 1970-01-02.*set it: timedatectl/u }
  },
  {
    name: "has no network, not even loopback",
    unshare: ["--net"],
    expected: { works: true }
  },
  {
    name: "has an older Node",
    env: () => ({
      NODE_OPTIONS:
        "--import=data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.20.2'}})"
    }),
    expected: { code: 78, says: /Node 20\.20\.2 lacks a security release. Choir needs Node 2/u }
  },
  {
    name: "has the home at another place than before",
    prepare: `mv "$home" "$work/moved"`,
    args: ({ work }) => ["--home", join(work, "moved")],
    expected: { code: 78, says: /this home was at .*home and is now at .*moved.* home accept/u }
  },
  {
    name: "has a copy of a home whose original is there",
    prepare: `cp -a "$home" "$work/copy"`,
    args: ({ work }) => ["--home", join(work, "copy")],
    expected: { code: 78, says: /copy is a copy of the home at .*which is still there.* home accept --copy/u }
  },
  {
    name: "has a link where the home should be",
    prepare: `ln -s "$home" "$work/link"`,
    args: ({ work }) => ["--home", join(work, "link")],
    expected: { code: 78, says: /it is a symbolic link[^]*name the folder that it leads to/u }
  },
  {
    name: "has a link above the home",
    prepare: `ln -s "$work" "$work/link"`,
    args: ({ work }) => ["--home", join(work, "link/home")],
    expected: { works: true }
  },
  {
    name: "has the home at two paths, as a bind mount makes it",
    prepare: `mkdir "$work/other"; mount --bind "$home" "$work/other"`,
    args: ({ work }) => ["--home", join(work, "other")],
    expected: { works: true }
  },
  {
    name: "has a home of another user",
    prepare: `chown -R $STRANGER "$home"`,
    expected: { code: 78, says: /it belongs to another user[^]*chown -R 0 / }
  },
  {
    name: "has a folder of another user in the home",
    user: STRANGER,
    prepare: `chown -R 0:0 "$home/socks"`,
    expected: { code: 78, says: /socks.* belongs to another user.*chown -R 12345/u }
  },
  {
    name: "has a database of another user in the home",
    user: STRANGER,
    prepare: `chown -R 0:0 "$home/data"`,
    expected: { code: 78, says: /data belongs to another user.*chown -R 12345/u }
  },
  {
    name: "has lost the folder in which choird is started",
    prepare: `mkdir "$work/gone"; cd "$work/gone"; rmdir "$work/gone"`,
    expected: { works: true }
  },
  {
    name: "has a PATH without the programs of the system",
    env: () => ({ PATH: "/nonexistent" }),
    expected: { code: 78, says: /flock is not in PATH \(apt install util-linux, or correct PATH\)/u },
    doctor: /flock is not in PATH\. To fix it: apt install util-linux, or correct PATH/u
  },
  {
    name: "lets a process write small files alone",
    prepare: `rm -r "$home/data"; ulimit -f 100`,
    expected: { code: 78, says: /files of at most .* here.*ulimit -f unlimited/u }
  },
  {
    name: "names a file of authorities that is not there",
    env: () => ({ NODE_EXTRA_CA_CERTS: "/nonexistent/ca.pem" }),
    expected: {
      code: 78,
      says: /NODE_EXTRA_CA_CERTS names \/nonexistent\/ca\.pem, which cannot be used: no such file/u
    }
  },
  {
    name: "names a proxy of SOCKS",
    env: () => ({ https_proxy: "socks5h://ada:hunter2@127.0.0.1:1080" }),
    expected: { code: 78, says: /HTTPS_PROXY names a proxy of socks5h, and Choir knows those of http and https/u }
  },
  {
    name: "names a proxy without a scheme",
    env: () => ({ HTTPS_PROXY: "proxy.example:3128" }),
    expected: { works: true }
  },
  {
    name: "has a folder in the place of config.json",
    prepare: `rm "$home/config.json"; mkdir "$home/config.json"`,
    expected: { code: 78, says: /it is a folder, as Docker makes one instead of a missing file[^]*rmdir/u }
  },
  {
    name: "has an empty config.json after a loss of power",
    prepare: `: > "$home/config.json"`,
    expected: { code: 78, says: /it is empty, which is not valid JSON/u }
  },
  {
    name: "has a socket and a lock of a choird that was killed",
    prepare: `echo 1 > "$home/choird.lock"; mkdir -p "$home/socks"; node -e "require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 9))" "$home/socks/choird.sock" || true`,
    expected: { works: true }
  },
  {
    name: "has a read-only root, but for the home and a folder for temporary files",
    prepare: `mount --bind "$work" "$work"; mount -o remount,ro,bind /`,
    env: ({ work }) => ({ TMPDIR: work }),
    expected: { works: true }
  },
  {
    name: "has neither users nor hosts nor name servers",
    prepare: `for file in passwd hosts resolv.conf nsswitch.conf; do mount --bind /dev/null "/etc/$file"; done`,
    expected: { works: true }
  },
  {
    name: "has a home that others can read, as a new volume is",
    prepare: `chmod 755 "$home"`,
    expected: { code: 78, says: /its permissions are 755 and must be 700[^]*chmod 700/u }
  }
]
