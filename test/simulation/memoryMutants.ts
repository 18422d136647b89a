/** Planted bugs of what choird keeps and tells: words from outside that are shown unasked, words that are kept twice, and a line that goes to somebody else. */
import type { Mutant } from "./Mutant.ts"

export const MEMORY_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "labelled-words-shown-unasked",
    file: "src/choird/memory/chunks.ts",
    find: "const tainted = isTainted(before.taint, lane) || isTainted(after, lane)",
    replace: "const tainted = isTainted(before.taint, lane) && isTainted(after, lane)",
    knownSeed: 7,
    breaks: ["Z1"]
  },
  {
    name: "window-chunked-twice",
    file: "src/choird/memory/chunks.ts",
    find: "{ ...kept, open: [], ...(end === undefined ? {} : { before: end }) }",
    replace: "{ ...kept, open: open.slice(0, -1), ...(end === undefined ? {} : { before: end }) }",
    knownSeed: 2,
    breaks: ["Z2"]
  },
  {
    name: "open-words-lost-at-a-restart",
    file: "src/choird/memory/chunks.ts",
    find: "  open: Schema.Array(Piece),",
    replace:
      "  open: Schema.Array(Piece).pipe(Schema.decode({ decode: SchemaGetter.transform(() => []), encode: SchemaGetter.transform((open) => open) })),",
    also: [
      {
        file: "src/choird/memory/chunks.ts",
        find: `import { Schema } from "effect"`,
        replace: `import { Schema, SchemaGetter } from "effect"`
      }
    ],
    knownSeed: 1,
    breaks: ["Z2"]
  },
  {
    name: "line-on-a-job-to-somebody-else",
    file: "src/agent/arbiter/decideCores.ts",
    find: "const in_reply_to = core.inbox_id === undefined ? {} : { in_reply_to: core.inbox_id }",
    replace: "const in_reply_to = core.inbox_id === undefined ? { in_reply_to: core.inbox_id } : {}",
    knownSeed: 47,
    breaks: ["N2"]
  }
]
