/** What README shows in its code blocks: the commands that a person types and the JSON that goes into config.json. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { ROOT } from "./installation.ts"

/** The commands of one block, without comments, or the keys of an object as a person pastes them. */
export type Block =
  | { readonly type: "commands"; readonly commands: ReadonlyArray<string> }
  | { readonly type: "json"; readonly keys: Readonly<Record<string, unknown>> }

const commandsIn = (text: string): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => {
    const command = line.replace(/\s+#.*$/u, "").trim()
    return command === "" ? [] : [command]
  })

/** The code blocks of a section, in order. */
export const blocksOf = (section: string): ReadonlyArray<Block> => {
  const [, text = ""] = readFileSync(join(ROOT, "README.md"), "utf8").split(`\n## ${section}\n`)
  const blocks = text.split(/\n## /u)[0]?.matchAll(/```(sh|json)\n([\s\S]*?)```/gu) ?? []
  return [...blocks].map(([, language, inside = ""]) =>
    language === "sh"
      ? { type: "commands", commands: commandsIn(inside) }
      : { type: "json", keys: JSON.parse(`{${inside}}`) }
  )
}
