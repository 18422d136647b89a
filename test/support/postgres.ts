/** A real Postgres 15 with pgvector for the tests: private, with fsync on, gone when the run ends. */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"

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
}

/** Why this machine cannot run the server, or `undefined` when it can. */
export const whyNoPostgres = (): string | undefined => {
  if (process.getuid?.() !== 0) return "not root, so Postgres cannot be installed and run as its own user"
  if (!existsSync("/usr/bin/apt-get")) return "not Debian, so there is no Postgres package to install"
  return undefined
}

/** Starts a server on data of its own; `vector: false` gives one that has never heard of pgvector. */
export const startPostgres = async ({ vector }: { readonly vector: boolean }): Promise<TestPostgres> => {
  execFileSync(SCRIPT, [PREFIX], { stdio: ["ignore", "ignore", "inherit"] })
  const folder = mkdtempSync(join(tmpdir(), "choir-postgres-"))
  const data = join(folder, "data")
  execFileSync("cp", ["-a", join(PREFIX, "data"), data])
  // Its own user comes in by the socket's folder alone; the others that tests make need their password.
  writeFileSync(join(data, "pg_hba.conf"), "local all choir trust\nlocal all all scram-sha-256\n")
  execFileSync("chown", ["postgres:postgres", folder])
  const binary = join(vector ? PREFIX : "/", "usr/lib/postgresql/15/bin/postgres")
  const settings = ["listen_addresses=", `unix_socket_directories=${folder}`, "max_connections=200"]
  // The server stops with this process, however that ends.
  const server = spawn(
    "setpriv",
    [...AS_POSTGRES, "--pdeathsig=INT", binary, "-D", data, ...settings.flatMap((setting) => ["-c", setting])],
    { stdio: ["ignore", "ignore", "pipe"] }
  )
  const ended = once(server, "exit")
  const log: Array<string> = []
  for await (const line of createInterface(server.stderr)) {
    log.push(line)
    if (line.includes("ready to accept connections")) break
  }
  server.stderr.resume()
  if (server.exitCode !== null) throw new Error(`Postgres did not start:\n${log.join("\n")}`)
  const stop = async () => {
    server.kill("SIGINT")
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
  return { host: folder, port: 5432, user: "choir", stop }
}
