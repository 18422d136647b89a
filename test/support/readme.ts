/** The commands that README shows in its code blocks, for a person to type. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { ROOT } from "./installation.ts"

/** The commands of one block, without comments. */
export type Block = ReadonlyArray<string>

const commandsIn = (text: string): Block =>
  text.split("\n").flatMap((line) => {
    const command = line.replace(/\s+#.*$/u, "").trim()
    return command === "" ? [] : [command]
  })

/** The code blocks of a section, in order. */
export const blocksOf = (section: string): ReadonlyArray<Block> => {
  const [, text = ""] = readFileSync(join(ROOT, "README.md"), "utf8").split(`\n## ${section}\n`)
  const blocks = text.split(/\n## /u)[0]?.matchAll(/```sh\n([\s\S]*?)```/gu) ?? []
  return [...blocks].map(([, inside = ""]) => commandsIn(inside))
}
