/** A real Postgres 15 with pgvector for the tests: private, with fsync on unless a setting says otherwise, gone when the run ends. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"

const PREFIX = "/var/cache/choir-test/postgres-15"
const SCRIPT = join(import.meta.dirname, "postgres.sh")
const AS_POSTGRES = ["--reuid=postgres", "--regid=postgres", "--clear-groups"]

/** A running server. Its user `choir` needs no password; the socket lies in a folder of 0700. */
export interface TestPostgres {
  /** The folder of its Unix socket, which the client takes for a host. */
  readonly host: string
  readonly port: number
  readonly user: string
  readonly stop: () => Promise<void>
  /** Ends the server and all its backends with SIGKILL, in the middle of whatever they do; returns when none of them is left. */
  readonly kill: () => Promise<void>
  /** Starts it again after {@link kill}, with what the disk has; returns when it accepts connections. */
  readonly restart: () => Promise<void>
}

/** Why this machine cannot run the server, or `undefined` when it can. */
export const whyNoPostgres = (): string | undefined => {
  if (process.getuid?.() !== 0) return "not root, so Postgres cannot be installed and run as its own user"
  if (!existsSync("/usr/bin/apt-get")) return "not Debian, so there is no Postgres package to install"
  return undefined
}

/** Processes below one, or none when it has ended. */
const childrenOf = (pid: number): ReadonlyArray<number> => {
  const file = `/proc/${pid}/task/${pid}/children`
  return existsSync(file) ? readFileSync(file, "utf8").split(" ").filter(Boolean).map(Number) : []
}

const GONE_LOOK_MS = 5

/** Whether a process still holds anything: a zombie does not. */
const holds = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    return stat[stat.lastIndexOf(")") + 2] !== "Z"
  } catch {
    return false
  }
}

/** Kills a server whole. It stands still first, so that no backend is born beside the ones that are found. */
const killServer = async (server: ChildProcess): Promise<void> => {
  const pid = server.pid ?? 0
  const ended = once(server, "exit")
  server.kill("SIGSTOP")
  const backends = childrenOf(pid)
  for (const backend of backends) process.kill(backend, "SIGKILL")
  server.kill("SIGKILL")
  await ended
  while (backends.some(holds)) await sleep(GONE_LOOK_MS)
}

/** Starts the program and waits until it accepts connections. */
const launch = async (binary: string, args: ReadonlyArray<string>): Promise<ChildProcess> => {
  // The server stops with this process, however that ends.
  const server = spawn("setpriv", [...AS_POSTGRES, "--pdeathsig=INT", binary, ...args], {
    stdio: ["ignore", "ignore", "pipe"]
  })
  const log: Array<string> = []
  for await (const line of createInterface(server.stderr)) {
    log.push(line)
    if (line.includes("ready to accept connections")) break
  }
  server.stderr.resume()
  if (server.exitCode !== null) throw new Error(`Postgres did not start:\n${log.join("\n")}`)
  return server
}

/** Starts a server on data of its own; `vector: false` gives one that has never heard of pgvector. */
export const startPostgres = async (options: {
  readonly vector: boolean
  /** Further settings, each `name=value`. */
  readonly settings?: ReadonlyArray<string>
}): Promise<TestPostgres> => {
  const { settings: more = [], vector } = options
  execFileSync(SCRIPT, [PREFIX], { stdio: ["ignore", "ignore", "inherit"] })
  const folder = mkdtempSync(join(tmpdir(), "choir-postgres-"))
  const data = join(folder, "data")
  execFileSync("cp", ["-a", join(PREFIX, "data"), data])
  // Its own user comes in by the socket's folder alone; the others that tests make need their password.
  writeFileSync(join(data, "pg_hba.conf"), "local all choir trust\nlocal all all scram-sha-256\n")
  execFileSync("chown", ["postgres:postgres", folder])
  const binary = join(vector ? PREFIX : "/", "usr/lib/postgresql/15/bin/postgres")
  // After a kill the server flushes its folder before it recovers: as one call, not file by file, which takes seconds.
  const recovery = "recovery_init_sync_method=syncfs"
  const settings = ["listen_addresses=", `unix_socket_directories=${folder}`, "max_connections=200", recovery, ...more]
  const args = ["-D", data, ...settings.flatMap((setting) => ["-c", setting])]
  let server = await launch(binary, args)
  const stop = async () => {
    if (server.exitCode === null && server.signalCode === null) {
      const ended = once(server, "exit")
      server.kill("SIGINT")
      await ended
    }
    rmSync(folder, { recursive: true, force: true })
  }
  const restart = async () => {
    server = await launch(binary, args)
  }
  return { host: folder, port: 5432, user: "choir", stop, kill: () => killServer(server), restart }
}
