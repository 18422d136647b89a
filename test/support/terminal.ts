/**
 * A shell in a real terminal: Debian's `script` makes the pty, so that programs see a person's terminal on all three descriptors. What
 * appears on the screen is text without colours and cursor movements, and every wait for it has a deadline.
 */
import { spawn } from "node:child_process"
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { stripVTControlCharacters } from "node:util"
import { Deferred, Effect, Schema } from "effect"

/** Something that takes a moment: an echo, a prompt, the answer of a question. */
export const SOON = "30 seconds"
/** Something that starts programs or opens a database, on a busy machine. */
export const LATER = "240 seconds"

/** The end of the screen that a failure shows. */
const SHOWN_CHARS_MAX = 4000
const COLUMNS = 100
const ROWS = 40
/** How long the shell may take to end with its terminal. */
const CLOSE_MS_MAX = 20_000

/** What was waited for did not appear. */
export class NotSeen extends Schema.TaggedError<NotSeen>()("NotSeen", {
  wanted: Schema.String,
  screen: Schema.String
}) {
  override get message() {
    return `did not see ${this.wanted} in the terminal, which ends with:\n${this.screen}`
  }
}

/** How a command is run. */
interface How {
  /** What it has to end with; 0 by default. */
  readonly code?: number
  /** What the person does before it ends. */
  readonly meanwhile?: Effect.Effect<unknown, NotSeen>
}

export interface Terminal {
  /** The end of what has appeared. */
  readonly screen: Effect.Effect<string>
  /** Everything that has appeared, with its colours and cursor movements. */
  readonly drawn: Effect.Effect<string>
  /** Types text as it is. */
  type(text: string): Effect.Effect<void>
  /** Types a line and Enter. */
  line(text: string): Effect.Effect<void>
  /** Waits until something appears after what was last seen, and answers the screen up to its end. */
  see(wanted: string | RegExp, within?: typeof SOON | typeof LATER): Effect.Effect<string, NotSeen>
  /** Types a command at the shell's prompt and waits for its end; answers what it printed since what was last seen of it. */
  run(command: string, how?: How): Effect.Effect<string, NotSeen>
  /** Takes the terminal away from what runs in it, as somebody who closes its window. */
  readonly close: Effect.Effect<void>
}

/** The keys that a person presses. */
export const KEYS = {
  enter: "\r",
  down: "\u001b[B",
  left: "\u001b[D",
  endOfInput: "\u0004",
  interrupt: "\u0003",
  eraseLine: "\u0015"
}

const PROMPT = "shell$ "

interface Person {
  readonly home: string
  /** Another user than this process's own; needs root. */
  readonly uid?: number
  readonly path: string
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  /** A program and its arguments that run the shell somewhere else, such as in namespaces. */
  readonly within?: ReadonlyArray<string>
}

/** Opens a terminal with a shell in it, until the scope closes. */
export const openTerminal = Effect.fnUntraced(function* ({ cwd, env, home, path, uid, within = [] }: Person) {
  const shell = `stty cols ${COLUMNS} rows ${ROWS}; exec env "PS1=${PROMPT}" bash --norc --noprofile -i`
  const line = ["script", "-qefc", shell, "/dev/null"]
  const asUser = uid === undefined ? [] : ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"]
  const [program = "", ...args] = [...within, ...asUser, ...line]
  const closed = yield* Deferred.make<void>()
  let screen = ""
  let seen = 0
  let changed = Deferred.makeUnsafe<void>()
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(program, args, {
        cwd,
        env: { HOME: home, PATH: path, TERM: "xterm", LANG: "C.UTF-8", TZ: "UTC", SHELL: "/bin/bash", ...env },
        stdio: ["pipe", "pipe", "inherit"]
      })
    ),
    (child) =>
      Effect.sync(() => child.kill("SIGHUP")).pipe(
        Effect.andThen(Deferred.await(closed)),
        Effect.timeoutOrElse({ duration: CLOSE_MS_MAX, orElse: () => Effect.sync(() => child.kill("SIGKILL")) })
      )
  )
  let raw = ""
  child.stdin.on("error", () => undefined)
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    raw += part
    screen = stripVTControlCharacters(raw).replaceAll("\r", "")
    Deferred.doneUnsafe(changed, Effect.void)
    changed = Deferred.makeUnsafe()
  })
  child.once("close", () => Deferred.doneUnsafe(closed, Effect.void))

  const find = (wanted: string | RegExp) => {
    const rest = screen.slice(seen)
    const at = typeof wanted === "string" ? rest.indexOf(wanted) : rest.search(wanted)
    if (at < 0) return undefined
    const length = typeof wanted === "string" ? wanted.length : (wanted.exec(rest)?.[0].length ?? 0)
    const upTo = rest.slice(0, at + length)
    seen += at + length
    return upTo
  }
  const wait = (wanted: string | RegExp): Effect.Effect<string> =>
    Effect.suspend(() => {
      const next = changed
      const found = find(wanted)
      return found === undefined ? Effect.andThen(Deferred.await(next), wait(wanted)) : Effect.succeed(found)
    })

  const type: Terminal["type"] = (text) => Effect.sync(() => void child.stdin.write(text))
  const see: Terminal["see"] = (wanted, within = SOON) =>
    Effect.timeoutOrElse(wait(wanted), {
      duration: within,
      orElse: () => new NotSeen({ wanted: String(wanted), screen: screen.slice(-SHOWN_CHARS_MAX) })
    })
  const terminal: Terminal = {
    screen: Effect.sync(() => screen.slice(-SHOWN_CHARS_MAX)),
    drawn: Effect.sync(() => raw),
    type,
    see,
    line: (text) => type(`${text}${KEYS.enter}`),
    close: Effect.andThen(
      Effect.sync(() => child.kill("SIGKILL")),
      Deferred.await(closed)
    ),
    run: Effect.fnUntraced(function* (command, { code = 0, meanwhile = Effect.void } = {}) {
      yield* type(`${command}; echo "=$?="${KEYS.enter}`)
      yield* see('"=$?="')
      yield* meanwhile
      const output = yield* see(/=\d+=\n/u, LATER)
      if (!output.endsWith(`=${code}=\n`))
        return yield* new NotSeen({ wanted: `exit code ${code} of ${command}`, screen: output })
      return output.slice(0, output.lastIndexOf("="))
    })
  }
  yield* see(PROMPT)
  return terminal
})

/** An empty HOME that belongs to a user. */
export const emptyHome = Effect.fnUntraced(function* (uid: number | undefined) {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-person-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true, maxRetries: 5 }))
  )
  if (uid !== undefined) chownSync(folder, uid, uid)
  return folder
})

const FOLDERS = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]

/** A folder for PATH with the programs of this machine except some. */
export const programsWithout = Effect.fnUntraced(function* (...missing: ReadonlyArray<string>) {
  const folder = yield* emptyHome(undefined)
  const programs = join(folder, "bin")
  mkdirSync(programs, { mode: 0o755 })
  const names = new Set(missing)
  for (const from of FOLDERS)
    for (const name of readdirSync(from)) {
      if (names.has(name)) continue
      names.add(name)
      symlinkSync(join(from, name), join(programs, name))
    }
  return programs
})
