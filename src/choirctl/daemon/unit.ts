/** The unit by which systemd runs choird for one user (R76). */
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { loadFiles } from "#src/shared/config/configFiles.ts"
import { userFolder } from "#src/shared/files/homeFolder.ts"
import { systemWords, writeWhole } from "#src/shared/files/writeWhole.ts"
import { CHOIRD_STOP_MS_MAX } from "#src/shared/limits.ts"
import { CHOIRD_ENVIRONMENT, CHOIRD_NODE_FLAGS, ChoirdProgram } from "./choirdProgram.ts"

const READABLE_BY_ALL = 0o644
const SYSTEMCTL = ["/usr/bin/systemctl", "/bin/systemctl"]

/** Commands to run after the unit was written. */
const NEXT = ["systemctl --user daemon-reload", "systemctl --user enable --now choird", "loginctl enable-linger"]

const fileProblem = (path: string, problem: string) => failed("FILE", `${path}: ${problem}`, `check ${dirname(path)}`)

const attempt = <A>(path: string, run: () => A) =>
  Effect.try({ try: run, catch: (cause) => fileProblem(path, String(cause)) })

const foreign = (path: string) =>
  failed("UNIT_FOREIGN", `${path} was not written by choirctl`, "move it away, then try again")

/** The unit's text that is there, when it is one of Choir's. */
const present = Effect.fnUntraced(function* (path: string) {
  if (!existsSync(path)) return undefined
  const text = yield* attempt(path, () => readFileSync(path, "utf8"))
  return text.startsWith(UNIT_MARK) ? text : yield* foreign(path)
})

/** Writes the unit for this home; its workspaces are those of config.json now. */
export const installUnit = Effect.fn("choirctl.installUnit")(function* (home: string) {
  if (!SYSTEMCTL.some((path) => existsSync(path)))
    return yield* failed("NO_SYSTEMD", "this host has no systemd", "choirctl daemon start")
  const files = yield* loadFiles(home)
  const workspaces = Object.values(files.config.workspaces).map(({ path }) => path)
  const path = unitPath()
  const before = yield* present(path)
  const program = yield* ChoirdProgram
  const text = unitText({ node: process.execPath, program, home: files.home, workspaces })
  yield* attempt(path, () => mkdirSync(dirname(path), { recursive: true }))
  yield* Effect.mapError(writeWhole(path, text, READABLE_BY_ALL), (error) => fileProblem(path, systemWords(error)))
  return { path, changed: before !== text, next: NEXT }
})

/** Removes the unit; the user disables it in systemd first. */
export const uninstallUnit = Effect.gen(function* () {
  const path = unitPath()
  const removed = (yield* present(path)) !== undefined
  if (removed) yield* attempt(path, () => rmSync(path))
  return { path, removed, next: removed ? ["systemctl --user daemon-reload"] : [] }
})

/** Where systemd looks for the units of this user. */
export const unitPath = (): string =>
  join(process.env["XDG_CONFIG_HOME"] ?? join(userFolder ?? "/", ".config"), "systemd/user/choird.service")

/** The first line of every unit of Choir, so that no other unit is replaced or removed. */
export const UNIT_MARK = "# Written by choirctl daemon install"

const STOP_GRACE_MS = 10_000

/** A word as systemd reads it: in quotes, with its escapes and specifiers taken literally. */
const word = (text: string) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("%", "%%")}"`

/** The same in a command line, where a dollar would be a variable. */
const argument = (text: string) => word(text).replaceAll("$", "$$$$")

const below = (path: string, folder: string) => path === folder || path.startsWith(`${folder}/`)

export interface UnitPlan {
  readonly node: string
  readonly program: string
  readonly home: string
  readonly workspaces: ReadonlyArray<string>
}

/**
 * The unit's text. It hardens what agents in sandboxes survive: they need user namespaces, a proc file system without anything mounted
 * over it, control groups that choird may write, and memory that is first written and then run. So there is no RestrictNamespaces,
 * ProtectKernelTunables, ProtectKernelLogs, ProtectControlGroups, ProtectProc and MemoryDenyWriteExecute.
 */
export const unitText = ({ home, node, program, workspaces }: UnitPlan): string => {
  const writable = [home, ...workspaces.map((path) => `-${path}`)]
  // With a /tmp of its own choird would not see what is in the host's.
  const inTmp = [home, program, ...workspaces].some((path) => below(path, "/tmp") || below(path, "/var/tmp"))
  return `${UNIT_MARK}
[Unit]
Description=Choir: agents under a deterministic control plane
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=exec
ExecStart=${[node, ...CHOIRD_NODE_FLAGS, program, "--home", home].map(argument).join(" ")}
Environment=${Object.entries(CHOIRD_ENVIRONMENT)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ")}
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=2 78
KillMode=mixed
TimeoutStopSec=${(CHOIRD_STOP_MS_MAX + STOP_GRACE_MS) / 1000}
Delegate=yes
MemoryMax=75%
OOMPolicy=continue
PrivateUsers=yes
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=${writable.map(word).join(" ")}
PrivateTmp=${inTmp ? "no" : "yes"}
LimitCORE=0
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native

[Install]
WantedBy=default.target
`
}
