/**
 * A host and the Internet around it as two network namespaces joined by a cable, so that nothing of Choir has to be replaced: choird runs on the
 * host, with real interfaces and `::1` on loopback, asks a real name server, and reaches hosts at addresses of the public network by http and
 * https. A private authority, which the host's store has, signed their certificate. Every other address that anybody connects to is a trap.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { connect, createServer, type Server } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import type { makeAuthority } from "../certificate.ts"
import { ensureDebianPackages, leaveOut, whyNotRoot } from "../packages.ts"
import type { Front, PeerPlan, PeerSeen } from "./peer.ts"

/** The families that the host has beside its loopback, which has both. */
export type Families = "IPv4" | "IPv6" | "both"

/** A service at a host: a port of it leads to a port of the test's loopback; with `tls` the host ends TLS. */
export interface OutsideService {
  readonly port: number
  readonly tls: boolean
  readonly to: number
}

export interface OutsidePlan {
  readonly families: Families
  /** The services of each host, by its name. Each host has a public address of either family. */
  readonly hosts: Readonly<Record<string, ReadonlyArray<OutsideService>>>
  /** The authority that the host trusts, with a certificate for the hosts. */
  readonly authority: Effect.Success<ReturnType<typeof makeAuthority>>
  /** Further names with their answers, one after the other. */
  readonly names?: PeerPlan["names"]
}

/** Where nothing is served, and the trap listens on both machines. */
export const TRAP_PORT = 8181

const HOST_V4 = "192.168.77.2"
const ROUTER_V4 = "192.168.77.1"
const HOST_V6 = "2a00:1098:77:1::2"
const ROUTER_V6 = "2a00:1098:77:1::1"

/** The public addresses of the n-th host. */
const addressesOf = (n: number) => [`93.184.216.${34 + n}`, `2606:2800:220:1::${(0x34 + n).toString(16)}`]

/** The addresses of the host named first, which names of a test may lead to. */
export const [SITE_V4 = "", SITE_V6 = ""] = addressesOf(0)

/** Why a suite with this network is left out here, or `undefined`. */
export const noOutsideNetwork = (suite: string): string | undefined => {
  const missing = whyNotRoot(suite) ?? ensureDebianPackages(["iproute2", "openssl"], suite)
  if (missing !== undefined) return missing
  try {
    execFileSync("unshare", ["--net", "--mount", "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth1"])
    return undefined
  } catch {
    return leaveOut(suite, "this kernel gives no network namespaces with a cable between them")
  }
}

const PEER = join(import.meta.dirname, "peer.ts")

/** A machine: a process in namespaces of its own, which end with it. */
const startPeer = (plan: PeerPlan, prepare: string) =>
  Effect.acquireRelease(
    Effect.callback<ChildProcess>((resume) => {
      const script = `set -e; ip link set lo up; ${prepare}\nexec "$@"`
      const line = ["--net", "--mount", "sh", "-c", script, "sh", process.execPath, PEER, JSON.stringify(plan)]
      const child = spawn("unshare", line, { stdio: ["ignore", "inherit", "inherit", "ipc"] })
      child.once("message", () => resume(Effect.succeed(child)))
      child.once("exit", (code) => resume(Effect.die(new Error(`a machine of the network ended with ${code}`))))
    }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )

const seenBy = (child: ChildProcess) =>
  Effect.callback<PeerSeen>((resume) => {
    child.once("message", (seen) => resume(Effect.succeed(seen as PeerSeen)))
    child.send("seen")
  })

/** A socket of the file system, which every network namespace reaches, in front of a port of the test's loopback. */
const passage = (path: string, port: number) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer((socket) => {
        const service = connect(port, "127.0.0.1")
        for (const [one, other] of [
          [socket, service],
          [service, socket]
        ] as const)
          one.on("error", () => other.destroy()).once("close", () => other.destroy())
        socket.pipe(service).pipe(socket)
      })
      server.listen(path, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  )

/** The commands by which a copy of /etc becomes the host's: its name server, and the authority in the stores of programs and of Chromium. */
const ownEtc = (folder: string, ca: string, families: Families) => `
mkdir -p ${folder}/etc; cp -a /etc/. ${folder}/etc
rm -f ${folder}/etc/resolv.conf
echo "nameserver ${families === "IPv6" ? ROUTER_V6 : ROUTER_V4}" > ${folder}/etc/resolv.conf
mkdir -p ${folder}/etc/ssl/certs ${folder}/etc/chromium/policies/managed
cat ${ca} >> ${folder}/etc/ssl/certs/ca-certificates.crt
cp ${ca} ${folder}/etc/ssl/certs/authority.pem
ln -sf authority.pem ${folder}/etc/ssl/certs/$(openssl x509 -hash -noout -in ${ca}).0
printf '{"CACertificates":["%s"]}' "$(openssl x509 -in ${ca} -outform DER | base64 -w 0)" > ${folder}/etc/chromium/policies/managed/authority.json
mount --bind ${folder}/etc /etc`

const run = (pid: number | undefined, line: string) => {
  const [program = "", ...args] = line.split(" ")
  execFileSync("nsenter", [`--net=/proc/${pid}/ns/net`, program, ...args])
}

/** The cable, the addresses at its ends, and the way from the host to everywhere, which the other end answers for. */
const plugIn = (host: number | undefined, world: number | undefined, families: Families) => {
  run(host, `ip link add eth0 type veth peer name eth0 netns ${world}`)
  for (const pid of [host, world]) run(pid, "ip link set eth0 up")
  if (families !== "IPv6") {
    run(host, `ip addr add ${HOST_V4}/24 dev eth0`)
    run(world, `ip addr add ${ROUTER_V4}/24 dev eth0`)
    run(host, `ip route add default via ${ROUTER_V4}`)
    run(world, "ip route add local 0.0.0.0/0 dev lo table main")
  }
  if (families !== "IPv4") {
    run(host, `ip -6 addr add ${HOST_V6}/64 dev eth0 nodad`)
    run(world, `ip -6 addr add ${ROUTER_V6}/64 dev eth0 nodad`)
    run(world, "ip -6 addr add fe80::1/64 dev eth0 nodad")
    run(host, `ip -6 route add default via ${ROUTER_V6}`)
    run(world, "ip -6 route add local ::/0 dev lo table main")
  }
}

/** The network of a scope. */
export const outsideNetwork = Effect.fnUntraced(function* ({ authority, families, hosts, names = {} }: OutsidePlan) {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-outside-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  chmodSync(folder, 0o755)
  mkdirSync(join(folder, "etc"))
  const { ca, cert, key } = authority
  const fronts: Array<Front> = []
  for (const [n, services] of Object.values(hosts).entries())
    for (const { port, tls, to } of services) {
      const socket = join(folder, `${n}-${port}.sock`)
      yield* passage(socket, to)
      fronts.push({ addresses: addressesOf(n), port, socket, tls })
    }
  const known = Object.fromEntries(Object.keys(hosts).map((name, n) => [name, [addressesOf(n)]]))
  const trap_ports = [80, 443, TRAP_PORT]
  const world = yield* startPeer({ names: { ...known, ...names }, fronts, cert, key, trap_ports }, "")
  const host = yield* startPeer({ names: {}, fronts: [], cert, key, trap_ports }, ownEtc(folder, ca, families))
  yield* Effect.sync(() => plugIn(host.pid, world.pid, families))
  /** A command line on the host begins with it. */
  const within = ["nsenter", `--net=/proc/${host.pid}/ns/net`, `--mount=/proc/${host.pid}/ns/mnt`]
  return {
    within,
    /** What happened so far in the world, and at the traps of both machines. */
    seen: Effect.map(Effect.all([seenBy(world), seenBy(host)]), ([outside, inside]) => ({
      asked: outside.asked,
      trapped: [...outside.trapped, ...inside.trapped.map((place) => `the host's ${place}`)]
    })),
    /** Programs that trust the store of the host. */
    env: { NODE_USE_SYSTEM_CA: "1", SSL_CERT_FILE: "/etc/ssl/certs/ca-certificates.crt" }
  }
})
