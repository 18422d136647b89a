/** Real git remotes on loopback: git-http-backend behind TLS and a password, and sshd. */
import { execFileSync, spawn } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:https"
import { type AddressInfo, createServer as createTcpServer } from "node:net"
import { join } from "node:path"
import { Effect } from "effect"
import { makeCertificateFor } from "./certificate.ts"
import { temporaryFolder } from "./engines.ts"

/** A bare repository with one commit on main. */
export const makeRemoteRepo = (root: string, name: string) => {
  const [bare, work] = [join(root, name), join(root, `${name}.work`)]
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-c", "user.name=op", "-c", "user.email=op@example.org", ...args], { stdio: "pipe" })
  git("init", "-q", "--bare", "-b", "main", bare)
  git("init", "-q", "-b", "main", work)
  writeFileSync(join(work, "README"), "first\n")
  git("-C", work, "add", "README")
  git("-C", work, "commit", "-q", "-m", "first")
  git("-C", work, "push", "-q", bare, "main")
  // git-http-backend takes pushes of whoever was let in.
  git("-C", bare, "config", "http.receivepack", "true")
  return bare
}

/** Author and committer of the newest commit of a bare repository. */
export const newestCommit = (bare: string) =>
  execFileSync("git", ["-C", bare, "log", "-1", "--format=%an <%ae> / %cn <%ce>: %s", "main"]).toString().trim()

interface Cgi {
  readonly root: string
  readonly user: string
  readonly password: string
  /** The address of this machine that it listens on, loopback by default. */
  readonly address?: string
  /** Files of its certificate, by default one for that address. */
  readonly certificate?: { readonly cert: string; readonly key: string }
  /**
   * Decides on each request that was let in, by its method and url: `hold` does nothing, a function is called when all is done. Neither is
   * answered before the server ends, since a connection that broke would be tried anew by git's own library.
   */
  readonly gate?: (request: string) => "serve" | "hold" | (() => void)
}

/** Serves the repositories below `root` to one user. */
export const startGitHttps = Effect.fnUntraced(function* (cgi: Cgi) {
  const { address = "127.0.0.1", gate, password, root, user } = cgi
  const { cert, key } = cgi.certificate ?? (yield* makeCertificateFor(`IP:${address}`))
  const refused: Array<string> = []
  const asked: Array<unknown> = []
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
    const wanted = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`
    const { authorization, ...headers } = request.headers
    // Headers are bytes, which Node reads as Latin 1.
    const said = Object.values(headers).map((value) => Buffer.from(String(value), "latin1").toString())
    asked.push([request.url, ...said, authorization === wanted ? "welcome" : authorization])
    if (authorization !== wanted) {
      refused.push(authorization ?? "")
      response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end()
      return
    }
    const decided = gate?.(`${request.method} ${request.url}`) ?? "serve"
    if (decided === "hold") return
    const url = new URL(request.url ?? "/", "https://server")
    const env = {
      PATH: "/usr/bin:/bin",
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? "GET",
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
      REMOTE_USER: user
    }
    const child = spawn("git", ["http-backend"], { env })
    request.pipe(child.stdin)
    const chunks: Array<Buffer> = []
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk))
    child.on("close", () => {
      if (typeof decided === "function") return decided()
      const all = Buffer.concat(chunks)
      const end = all.indexOf("\r\n\r\n")
      const answered = Object.fromEntries(
        all
          .subarray(0, end)
          .toString()
          .split("\r\n")
          .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)])
      )
      response.writeHead(Number.parseInt(answered["Status"] ?? "200", 10), answered).end(all.subarray(end + 4))
    })
  })
  yield* Effect.callback<void>((resume) => void server.listen(0, address, () => resume(Effect.void)))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      server.closeAllConnections()
      server.close()
    })
  )
  return { host: `${address}:${(server.address() as AddressInfo).port}`, cert, refused, asked }
})

/** A port of the address that nobody listens on at the moment; another program may take it before it is used. */
const freePort = (address: string) =>
  Effect.callback<number>((resume) => {
    const probe = createTcpServer().listen(0, address, () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resume(Effect.succeed(port)))
    })
  })

/** Ports that are tried for a server which cannot choose one itself. */
const PORTS_TRIED_MAX = 10

/** A key pair of its own for the host and one for the user who may log in as root. */
export const startSshd = Effect.fnUntraced(function* (address = "127.0.0.1") {
  const folder = yield* temporaryFolder
  const keygen = (name: string) => {
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", join(folder, name)])
    return { key: readFileSync(join(folder, name), "utf8"), pub: readFileSync(join(folder, `${name}.pub`), "utf8") }
  }
  const [host, user] = [keygen("host"), keygen("user")]
  writeFileSync(join(folder, "authorized"), user.pub, { mode: 0o600 })
  const config = join(folder, "sshd_config")
  const configured = (port: number) =>
    [
      `ListenAddress ${address}:${port}`,
      `HostKey ${join(folder, "host")}`,
      `AuthorizedKeysFile ${join(folder, "authorized")}`,
      "PermitRootLogin prohibit-password",
      "PasswordAuthentication no",
      "KbdInteractiveAuthentication no",
      "UsePAM no",
      "StrictModes no",
      "PidFile none",
      ""
    ].join("\n")
  // Where Debian's sshd drops its rights to.
  mkdirSync("/run/sshd", { recursive: true, mode: 0o755 })
  let said = ""
  const listening = Effect.gen(function* () {
    const port = yield* freePort(address)
    writeFileSync(config, configured(port))
    said = ""
    const child = spawn("/usr/sbin/sshd", ["-D", "-e", "-f", config], { stdio: ["ignore", "ignore", "pipe"] })
    yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
    yield* Effect.callback<void, string>((resume) => {
      child.stderr.on("data", (chunk: Buffer) => {
        said += chunk.toString()
        if (said.includes("listening on")) resume(Effect.void)
      })
      child.once("exit", () => resume(Effect.fail(`sshd ended: ${said}`)))
    })
    return port
  })
  const isTaken = (problem: string) => problem.includes("Address already in use")
  const port = yield* Effect.orDie(Effect.retry(listening, { while: isTaken, times: PORTS_TRIED_MAX - 1 }))
  const known_hosts = [`[${address}]:${port} ${host.pub.split(" ").slice(0, 2).join(" ")}`]
  return { port, key: user.key, known_hosts, said: () => said }
})
