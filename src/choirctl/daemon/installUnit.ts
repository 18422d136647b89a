/** Puts the unit where systemd finds it, and takes it away. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { Effect } from "effect"
import { loadFiles } from "#src/shared/config/configFiles.ts"
import { CHOIRD } from "./choirdProgram.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { UNIT_MARK, unitPath, unitText } from "./unit.ts"

const SYSTEMCTL = ["/usr/bin/systemctl", "/bin/systemctl"]

/** What to run after the unit was written. */
const NEXT = ["systemctl --user daemon-reload", "systemctl --user enable --now choird", "loginctl enable-linger"]

const attempt = <A>(path: string, run: () => A) =>
  Effect.try({ try: run, catch: (cause) => failed("FILE", `${path}: ${String(cause)}`, `look at ${dirname(path)}`) })

const foreign = (path: string) =>
  failed("UNIT_FOREIGN", `${path} was not written by choirctl`, "move it away, then ask again")

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
  const text = unitText({ node: process.execPath, program: CHOIRD, home: files.home, workspaces })
  yield* attempt(path, () => {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(`${path}.new`, text, { mode: 0o644 })
    renameSync(`${path}.new`, path)
  })
  return { path, changed: before !== text, next: NEXT }
})

/** Removes the unit; systemd is told by its user, before. */
export const uninstallUnit = Effect.gen(function* () {
  const path = unitPath()
  const removed = (yield* present(path)) !== undefined
  if (removed) yield* attempt(path, () => rmSync(path))
  return { path, removed, next: removed ? ["systemctl --user daemon-reload"] : [] }
})
