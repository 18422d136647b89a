/** Looks for canaries, in every form, in files and streams of any size. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, openSync, closeSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { rgPath } from "@vscode/ripgrep"
import { Effect } from "effect"
import { type Canary, formsOf } from "./secrets.ts"

/** One form of one canary in one place. */
export interface Hit {
  readonly canary: string
  readonly form: string
  /** A file, or `-` for a stream. */
  readonly file: string
}

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024

/** A search for these canaries; what it needs is gone with the scope. */
export const makeSearch = (canaries: ReadonlyArray<Canary>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-needles-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    ),
    (folder) => {
      const known = new Map<string, ReadonlyArray<Omit<Hit, "file">>>()
      for (const { name, needle } of canaries)
        for (const [form, written] of Object.entries(formsOf(needle)))
          known.set(written, [...(known.get(written) ?? []), { canary: name, form }])
      const needles = join(folder, "needles")
      writeFileSync(needles, `${[...known.keys()].join("\n")}\n`, { mode: 0o600 })
      const args = ["--text", "--fixed-strings", "--only-matching", "--no-line-number", "--with-filename", "--null"]
      const whole = ["--no-config", "--no-ignore", "--hidden", "--no-encoding", "--file", needles]

      const search = (paths: ReadonlyArray<string>, stdin?: number): ReadonlyArray<Hit> => {
        const ran = spawnSync(rgPath, [...args, ...whole, "--", ...paths], {
          stdio: [stdin ?? "ignore", "pipe", "pipe"],
          maxBuffer: OUTPUT_BYTES_MAX
        })
        // 1 is "nothing found"; with 2 something could not be read, as what a running program has just removed.
        if (ran.error !== undefined || ran.status === null) throw ran.error ?? new Error(`rg: ${ran.signal}`)
        const hits = ran.stdout
          .toString()
          .split("\n")
          .filter(Boolean)
          .flatMap((line) => {
            const at = line.indexOf("\0")
            return (known.get(line.slice(at + 1)) ?? []).map((hit) => ({ ...hit, file: line.slice(0, at) }))
          })
        return [...new Map(hits.map((hit) => [`${hit.canary} ${hit.form} ${hit.file}`, hit])).values()]
      }
      return {
        /** Files, and whatever lies below folders. */
        files: (paths: ReadonlyArray<string>) => (paths.length === 0 ? [] : search(paths)),
        /** A file that is read as a stream, so that its name says nothing about what it is. */
        stream: (file: string) => {
          const opened = openSync(file, "r")
          try {
            return search(["-"], opened)
          } finally {
            closeSync(opened)
          }
        }
      }
    }
  )
