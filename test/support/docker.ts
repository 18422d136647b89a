/**
 * The tests' own Docker engine. It maps root of its containers to a uid of nobody, as an operator's should (R38), and stays up
 * between runs; suites that never ask for it pay nothing.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { leaveOut } from "./packages.ts"

const SCRIPT = join(import.meta.dirname, "../../docker/engine.sh")
/** The Debian root that engines of the tests import, so that only the first of them makes it. */
const CACHE = "/var/cache/choir-test/debian-bookworm-slim.tar"
const STATE = "/var/lib/choir-docker-test"
/** What a machine trusts beyond Debian's own authorities, so that a mirror behind a proxy works in containers, too. */
const CERTIFICATES = "/usr/local/share/ca-certificates"
const START_MS_MAX = 300_000
const KILL_LOOKS_MAX = 250

interface EngineOptions {
  readonly state: string
  /** The engine's own bridge, `name=address/bits`: engines beside each other must not share one. */
  readonly bridge: string
  /** Where the networks of containers get their addresses. */
  readonly pool: string
  readonly dockerd?: ReadonlyArray<string>
}

/**
 * For an engine that a test restarts. A starting engine makes the host's rules for all engines anew, and another that makes a network
 * in that moment cannot.
 */
export const WITHOUT_RULES = "--iptables=false"

/** Starts an engine, or finds it running, and answers its socket. */
export const startEngine = ({ bridge, dockerd = [], pool, state }: EngineOptions): string => {
  const flags = ["--userns-remap=default", `--default-address-pool base=${pool},size=24`, ...dockerd].join(" ")
  const place = ["--own", "--state", state, "--bridge", bridge, "--dockerd", flags]
  const image = ["--no-pull", "--cache", CACHE, ...(existsSync(CERTIFICATES) ? ["--extra-ca", CERTIFICATES] : [])]
  const printed = execFileSync(SCRIPT, [...place, ...image], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: START_MS_MAX
  })
  return printed.trim().replace("DOCKER_HOST=unix://", "")
}

/** Stops an engine; without live-restore its containers end with it. */
export const stopEngine = (state: string) => execFileSync(SCRIPT, ["--down", "--state", state], { stdio: "pipe" })

const pidOf = (state: string) => Number(readFileSync(join(state, "dockerd.pid"), "utf8"))

/** Stops an engine where it stands, until it is sent SIGCONT. */
export const signalEngine = (state: string, signal: NodeJS.Signals) => process.kill(pidOf(state), signal)

/** The engine dies at once and its socket is gone; what holds its containers goes on. */
export const killEngine = (state: string) => {
  const pid = pidOf(state)
  process.kill(pid, "SIGKILL")
  for (let looks = 0; existsSync(`/proc/${pid}`) && looks < KILL_LOOKS_MAX; looks++)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
  rmSync(join(state, "docker.sock"), { force: true })
}

/** Why this machine cannot run an engine, or `undefined` when it can. Prints the reason, and with `CI=true` throws instead. */
export const whyNoEngine = (suite: string): string | undefined => {
  if (process.getuid?.() !== 0) return leaveOut(suite, "only root can start a Docker engine")
  if (!existsSync("/etc/debian_version")) return leaveOut(suite, "an engine is installed on Debian only")
  return undefined
}

/** The socket of the tests' engine, or why the suite has to be left out. */
export const testEngine = (suite: string): { readonly socket: string; readonly reason: string | undefined } => {
  const reason = whyNoEngine(suite)
  if (reason !== undefined) return { socket: "", reason }
  return { socket: startEngine({ state: STATE, bridge: "choir-test0=10.213.0.1/24", pool: "10.213.64.0/18" }), reason }
}
