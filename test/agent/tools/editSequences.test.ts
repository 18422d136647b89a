import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, type Schema } from "effect"
import { CallId } from "#schema/Ids.ts"
import type { EventOf } from "#schema/Event.ts"
import { ToolName, toWireName } from "#schema/Tool.ts"
import { resultOf } from "#src/agent/calls/callOutcomes.ts"
import { toolText } from "#src/agent/model/prompt/toolText.ts"
import { fsEdit } from "#src/agent/tools/fsEdit.ts"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import { fsWrite } from "#src/agent/tools/fsWrite.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { laneThatSaw } from "../../support/workspace.ts"
import { seeded } from "../../support/seeded.ts"
import { EVERY_TOOL } from "../../support/offered.ts"

/** Sequences of edits, and edits of each. */
const SEQUENCES = 1000
const EDITS = 8

/** Few different lines, so that many are the same: blank ones, brackets, words. */
const LINES = ["", "}", "  }", "a", "b", "  a", "return a", "return b", "const a = 1", "const b = 2"]

/**
 * A double of a model that knows of the file what results showed it, by number. A careful one shifts the numbers behind a change as the result tells it;
 * a careless one never does, so that most of its numbers are of an older version.
 */
class Double {
  known = new Map<number, string>()
  readonly #isCareful: boolean

  constructor(isCareful: boolean) {
    this.#isCareful = isCareful
  }

  see(text: string): void {
    if (this.#isCareful && text.startsWith("changed")) this.#shift(changeIn(text))
    for (const line of text.split("\n")) {
      const [, number, shown] = /^(\d+)\t(.*)$/u.exec(line) ?? []
      if (number !== undefined) this.known.set(Number(number), shown ?? "")
    }
  }

  /** The lines from one number to another, where all of them are known. */
  lines(first: number, last: number): ReadonlyArray<string> | undefined {
    const lines = Array.from({ length: last - first + 1 }, (_, at) => this.known.get(first + at))
    return lines.every((line) => line !== undefined) ? lines : undefined
  }

  #shift({ from, last, to }: { readonly from: number; readonly last: number; readonly to: number }): void {
    const kept = [...this.known].filter(([number]) => number < from || number > last)
    this.known = new Map(kept.map(([number, text]) => [number < from ? number : number + to - last, text]))
  }
}

/** The numbers that a result tells: the first and last line that changed, and the last line of what stands there. */
const changeIn = (text: string) => {
  const [, added, from, last, to] =
    /^changed [^:]*: (added )?(?:deleted )?lines? (\d+)(?:-(\d+))?(?: -> \d+(?:-(\d+))?)?/u.exec(text) ?? []
  const first = Number(from)
  const end = Number(last ?? from)
  if (added !== undefined) return { from: first, last: first - 1, to: end }
  if (text.includes(": deleted")) return { from: first, last: end, to: first - 1 }
  const after = / -> (\d+)(?:-(\d+))?/u.exec(text.split("\n")[0] ?? "")
  return { from: first, last: end, to: after === null ? end : Number(to ?? after[2] ?? after[1]) }
}

/** An edit as the double words it, and the file that it means when its words are true. */
interface Wanted {
  readonly tool: "edit" | "write"
  readonly input: Schema.Json
  /** The file after it, from the file before it; `undefined` where its words are not true of it, or of two places. */
  after(lines: ReadonlyArray<string>): string | undefined
}

const textOf = (lines: ReadonlyArray<string>) => lines.map((line) => `${line}\n`).join("")

const places = (lines: ReadonlyArray<string>, wanted: ReadonlyArray<string>) =>
  lines.flatMap((_, at) => (wanted.every((text, index) => lines[at + index] === text) ? [at] : []))

const standsAt = (lines: ReadonlyArray<string>, wanted: ReadonlyArray<string>, at: number) => {
  const found = places(lines, wanted)
  return found.length === 1 && found[0] === at
}

/** An edit of lines that the double knows, or `undefined` where it does not know enough of them. */
const wantedOf = (random: (below: number) => number, double: Double): Wanted | undefined => {
  const first = 1 + random(Math.max(1, ...double.known.keys()))
  const last = first + random(3)
  const content = Array.from({ length: random(4) }, () => LINES[random(LINES.length)] ?? "")
  const more = random(3)
  const whole = double.lines(first, last)
  const begins = double.lines(first, first + more)
  const ends = double.lines(Math.max(1, last - more), last)
  if (whole === undefined || begins === undefined || ends === undefined) return undefined
  const at = { path: "file", content: textOf(content), line: first, expect: textOf(begins) }
  const spliced = (lines: ReadonlyArray<string>, removed: number) =>
    textOf([...lines.slice(0, first - 1), ...content, ...lines.slice(first - 1 + removed)])
  switch (random(3)) {
    case 0:
      return {
        tool: "write",
        input: { ...at, mode: "insert" },
        after: (lines) => (standsAt(lines, begins, first - 1) ? spliced(lines, 0) : undefined)
      }
    case 1:
      return {
        tool: "write",
        input: { ...at, mode: "replace", end_line: last, expect_end: textOf(ends) },
        after: (lines) =>
          standsAt(lines, begins, first - 1) && standsAt(lines, ends, last - ends.length)
            ? spliced(lines, last - first + 1)
            : undefined
      }
    default:
      if (textOf(whole) === at.content) return undefined
      return {
        tool: "edit",
        input: { path: "file", old_text: textOf(whole), new_text: at.content },
        after: (lines) => {
          const [before, after, ...others] = textOf(lines).split(textOf(whole))
          return after === undefined || others.length > 0 || isTwice(textOf(lines), textOf(whole))
            ? undefined
            : `${before}${at.content}${after}`
        }
      }
  }
}

/** Whether a text occurs a second time, an overlap counted. */
const isTwice = (text: string, wanted: string) => text.indexOf(wanted) !== text.lastIndexOf(wanted)

const versionOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

/** A workspace of one file in memory, since thousands of edits are no subject of a file system. */
const memoryWorkspace = () => {
  let bytes: Uint8Array = Buffer.alloc(0)
  const current = () => ({ path: "file", bytes, sha256: versionOf(bytes) })
  return {
    text: () => Buffer.from(bytes).toString("utf8"),
    put: (text: string) => {
      bytes = Buffer.from(text)
    },
    layer: Layer.mock(Workspace, {
      root: "/",
      read: () => Effect.sync(current),
      versions: () => Effect.succeed(new Map()),
      update: (path, change) =>
        Effect.suspend(() => {
          const before = current()
          return Effect.map(Effect.fromResult(change(before)), (after) => {
            bytes = after
            return { path, before: before.sha256, after: versionOf(after) }
          })
        })
    })
  }
}

const player = Effect.gen(function* () {
  const { layer, put, text: file } = memoryWorkspace()
  const tools = yield* Effect.provide(
    Effect.all({ edit: fsEdit, read: fsRead, write: fsWrite }),
    Layer.merge(layer, Pictures.layerNone)
  )
  /** A lane at a fresh file; a call answers with its text, as a prompt shows it. */
  const lane = (content: string) => {
    const seen: Record<string, string> = {}
    put(content)
    return Effect.fnUntraced(function* (name: keyof typeof tools, input: Schema.Json) {
      const tool = tools[name]
      const outcome = yield* (yield* tool.prepare(input)).run(laneThatSaw(seen))
      for (const { path, sha256 } of outcome.reads ?? []) seen[path] = sha256
      for (const { path, after } of outcome.writes ?? []) seen[path] = after
      const payload = { ...resultOf(outcome, 0, 0, false), call_id: CallId.make("s-1-1-0") }
      const event = { rev: 1, payload } as EventOf<"ToolResultCommitted">
      return toolText(event, toWireName(ToolName.make(tool.llm.name)), false, EVERY_TOOL)
    })
  }
  return { lane, file }
})

describe("a model that knows only what it was shown", () => {
  for (const kind of ["careful", "careless"] as const)
    it.live(
      `changes no line that it did not mean, when it is ${kind}`,
      () =>
        Effect.gen(function* () {
          const { file, lane } = yield* player
          const counts = { changed: 0, refused: 0 }
          for (let sequence = 0; sequence < SEQUENCES; sequence++) {
            const random = seeded(sequence)
            const double = new Double(kind === "careful")
            const call = lane(textOf(Array.from({ length: 4 + random(12) }, () => LINES[random(LINES.length)] ?? "")))
            double.see(yield* call("read", { path: "file" }))
            for (let edit = 0; edit < EDITS; edit++) {
              const wanted = wantedOf(random, double)
              const lines = file().split("\n").slice(0, -1)
              if (wanted === undefined) continue
              const text = yield* call(wanted.tool, wanted.input)
              double.see(text)
              const name = `sequence ${sequence}, edit ${edit}: ${JSON.stringify(wanted.input)} of ${JSON.stringify(lines)}`
              assert.strictEqual(file(), wanted.after(lines) ?? textOf(lines), name)
              counts[text.startsWith("error: ") ? "refused" : "changed"]++
              if (kind === "careless") continue
              const now = file().split("\n")
              for (const [number, known] of double.known)
                assert.strictEqual(known, now[number - 1], `${name}, line ${number}`)
            }
          }
          yield* Effect.logInfo("edits", counts)
          assert.isAbove(counts.changed, SEQUENCES)
          assert.isAbove(counts.refused, SEQUENCES)
        }),
      300_000
    )
})
