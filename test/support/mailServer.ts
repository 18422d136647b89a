/** A mail server for the tests: Debian's dovecot and exim on loopback, with mailboxes of their own, gone when the scope ends. */
import { execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Context, Effect, Layer, type Scope } from "effect"
import { ensureDebianPackages, leaveOut } from "./packages.ts"

const PACKAGES = ["dovecot-imapd", "dovecot-lmtpd", "exim4-daemon-light"]
export const MAIL_DOMAIN = "choir.test"
const MAIL_USERS = ["ada", "bob", "eve", "max"] as const
export const MAIL_PASSWORD = "a-password-of-tests"
const LOOK_MS = 20

export interface MailServer {
  readonly imap_port: number
  readonly smtp_port: number
  /** The messages of a folder as they lie on the disk; `""` is the inbox. */
  files(user: string, folder?: string): ReadonlyArray<string>
  /** Puts messages into an inbox as deliveries would. */
  deliver(user: string, messages: ReadonlyArray<string | Uint8Array>): void
  /** Waits until exim has nothing more to deliver. */
  readonly idle: Effect.Effect<void>
}

/** Why this machine cannot run it, or `undefined`. */
const whyNoMail = (): string | undefined => {
  if (process.getuid?.() !== 0) return "not root, so dovecot and exim cannot be installed and run"
  return existsSync("/usr/bin/apt-get") ? undefined : "not Debian, so dovecot and exim cannot be installed"
}

const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const server = createServer()
    server.on("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

const isOpen = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("connect", () => resolve((socket.destroy(), true)))
    socket.once("error", () => resolve(false))
  })

interface Ports {
  readonly imap: number
  readonly lmtp: number
  readonly smtp: number
}

const dovecotConf = (dir: string, { imap, lmtp }: Ports) => `protocols = imap lmtp
listen = 127.0.0.1
base_dir = ${dir}/run
state_dir = ${dir}/state
log_path = ${dir}/dovecot.log
ssl = yes
ssl_cert = <${dir}/cert.pem
ssl_key = <${dir}/key.pem
disable_plaintext_auth = no
auth_mechanisms = plain login
mail_location = maildir:${dir}/vmail/%n
mail_uid = nobody
mail_gid = nogroup
first_valid_uid = 1
passdb {
  driver = passwd-file
  args = scheme=PLAIN username_format=%n ${dir}/users
}
userdb {
  driver = static
  args = uid=nobody gid=nogroup home=${dir}/vmail/%n
}
service imap-login {
  inet_listener imap {
    port = ${imap}
  }
  inet_listener imaps {
    port = 0
  }
}
service lmtp {
  inet_listener lmtp {
    address = 127.0.0.1
    port = ${lmtp}
  }
}
namespace inbox {
  inbox = yes
  separator = /
  mailbox Sent {
    auto = subscribe
    special_use = \\Sent
  }
}
`

const eximConf = (dir: string, { lmtp, smtp }: Ports) => `primary_hostname = localhost
spool_directory = ${dir}/exim/spool
log_file_path = ${dir}/exim/log/%slog
pid_file_path = ${dir}/exim/exim.pid
exim_user = Debian-exim
exim_group = Debian-exim
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${smtp}
tls_advertise_hosts = *
tls_certificate = ${dir}/cert.pem
tls_privatekey = ${dir}/exim/key.pem
auth_advertise_hosts = \${if eq{$tls_in_cipher}{}{}{*}}
acl_smtp_rcpt = rcpt
acl_smtp_data = accept
message_size_limit = 30M
host_lookup =
rfc1413_hosts =
keep_environment =
qualify_domain = ${MAIL_DOMAIN}
smtp_accept_max = 200
queue_only = false
begin acl
rcpt:
  deny message = authentication required
       !authenticated = *
  deny message = no such person here
       local_parts = nobody
  accept domains = ${MAIL_DOMAIN}
  deny message = relay not permitted
begin routers
box:
  driver = accept
  domains = ${MAIL_DOMAIN}
  transport = lmtp
begin transports
lmtp:
  driver = smtp
  protocol = lmtp
  hosts = 127.0.0.1
  allow_localhost
  hosts_override
  port = ${lmtp}
  hosts_try_auth =
  rcpt_include_affixes
begin retry
* * F,1h,1s
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = \${if eq{$auth3}{\${lookup{$auth2}lsearch{${dir}/exim/passwd}}}}
  server_set_id = $auth2
`

/** Files of a certificate and its key. */
interface Certificate {
  readonly cert: string
  readonly key: string
}

const makeCertificate = (dir: string) =>
  void execFileSync(
    "openssl",
    [
      ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost".split(" "),
      "-keyout",
      join(dir, "key.pem"),
      "-out",
      join(dir, "cert.pem")
    ],
    { stdio: "ignore" }
  )

const prepared = async (given: Certificate | undefined) => {
  ensureDebianPackages(PACKAGES, "the suites with a mail server")
  const dir = mkdtempSync(join(tmpdir(), "choir-mail-"))
  chmodSync(dir, 0o755)
  for (const folder of ["run", "state", "vmail", "exim", "exim/spool", "exim/log"]) mkdirSync(join(dir, folder))
  if (given === undefined) makeCertificate(dir)
  else for (const name of ["cert", "key"] as const) copyFileSync(given[name], join(dir, `${name}.pem`))
  writeFileSync(join(dir, "exim/key.pem"), readFileSync(join(dir, "key.pem")), { mode: 0o640 })
  const ports = { imap: await freePort(), lmtp: await freePort(), smtp: await freePort() }
  writeFileSync(join(dir, "users"), MAIL_USERS.map((user) => `${user}:{PLAIN}${MAIL_PASSWORD}\n`).join(""))
  const known = MAIL_USERS.flatMap((user) => [user, `${user}@${MAIL_DOMAIN}`])
  writeFileSync(join(dir, "exim/passwd"), known.map((user) => `${user}: ${MAIL_PASSWORD}\n`).join(""), { mode: 0o640 })
  writeFileSync(join(dir, "dovecot.conf"), dovecotConf(dir, ports))
  writeFileSync(join(dir, "exim.conf"), eximConf(dir, ports), { mode: 0o644 })
  execFileSync("chown", ["-R", "Debian-exim:Debian-exim", join(dir, "exim")])
  execFileSync("chown", ["root:root", join(dir, "exim.conf")])
  execFileSync("chown", ["nobody:nogroup", join(dir, "vmail")])
  return { dir, ports }
}

const DIED = ["--pdeathsig=TERM"]

/** The programs cannot choose their ports themselves, and another program may take one that was free. */
const STARTS_MAX = 3

const start = async (given?: Certificate, tried = 1): Promise<MailServer & { stop(): void }> => {
  const { dir, ports } = await prepared(given)
  const programs = [
    spawn("setpriv", [...DIED, "/usr/sbin/dovecot", "-F", "-c", join(dir, "dovecot.conf")], { stdio: "ignore" }),
    spawn("setpriv", [...DIED, "/usr/sbin/exim4", "-C", join(dir, "exim.conf"), "-bdf", "-q1s"], { stdio: "ignore" })
  ]
  while (!(await isOpen(ports.imap)) || !(await isOpen(ports.smtp))) {
    const ended = programs.find(({ exitCode }) => exitCode !== null)
    if (ended !== undefined) {
      for (const program of programs) program.kill()
      if (tried < STARTS_MAX) return await start(given, tried + 1)
      throw new Error(`${ended.spawnfile} ${ended.spawnargs.join(" ")} ended with ${ended.exitCode}`)
    }
    await sleep(LOOK_MS)
  }
  const folderOf = (user: string, folder: string) => join(dir, "vmail", user, folder === "" ? "" : `.${folder}`)
  const spooled = () => {
    const input = join(dir, "exim/spool/input")
    return existsSync(input) ? readdirSync(input, { recursive: true }).length : 0
  }
  return {
    imap_port: ports.imap,
    smtp_port: ports.smtp,
    files: (user, folder = "") =>
      ["new", "cur"].flatMap((part) => {
        const place = join(folderOf(user, folder), part)
        return existsSync(place) ? readdirSync(place).map((name) => readFileSync(join(place, name), "latin1")) : []
      }),
    deliver: (user, messages) => {
      const inbox = folderOf(user, "")
      for (const part of ["new", "cur", "tmp"]) mkdirSync(join(inbox, part), { recursive: true })
      for (const [n, raw] of messages.entries()) writeFileSync(join(inbox, "new", `${1_000_000 + n}.M${n}.tests`), raw)
      execFileSync("chown", ["-R", "nobody:nogroup", join(dir, "vmail", user)])
    },
    idle: Effect.promise(async () => {
      while (spooled() > 0) await sleep(LOOK_MS)
    }),
    stop: () => {
      for (const program of programs) program.kill("SIGTERM")
      rmSync(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
    }
  }
}

/** The server of a scope, with a certificate of its own or with this one. */
export const mailServerWith = (given?: Certificate): Effect.Effect<MailServer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => start(given)),
    (server) => Effect.sync(() => server.stop())
  )

/** The server of a scope. */
export const mailServer = mailServerWith()

const missing = whyNoMail()
/** Why the suites with a mail server are left out, or `undefined`. */
export const noMail = missing === undefined ? undefined : leaveOut("the suites with a mail server", missing)

/** The server that the tests of one file share. */
export class MailServerOfTests extends Context.Service<MailServerOfTests, MailServer>()(
  "choir/test/MailServerOfTests"
) {
  static readonly layer = Layer.effect(MailServerOfTests, mailServer)
}
