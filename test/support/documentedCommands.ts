/** The commands in a page of the documentation, as they stand there. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { ROOT } from "./installation.ts"

const SHELL_BLOCK = /^ *```sh\n([\s\S]*?)```/gmu
const ANY_BLOCK = /```[\s\S]*?```/gu
const CODE_SPAN = /`([^`]+)`/gu

/** The nouns of choirctl, which the first column of a table names without the program. */
const NOUNS =
  /^(?:agent|approval|audit|backup|chat|completions|config|daemon|db|doctor|init|logs|model|restore|secret|session|skill|status|tool|workspace) /u

export const pageText = (page: string): string => readFileSync(join(ROOT, page), "utf8")

const spans = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(CODE_SPAN)].map(([, span = ""]) => span.replaceAll(/\s+/gu, " ").trim())

/** What a reader types: each line of the shell blocks without its comment, and the commands in the first column of tables. */
export const typedCommands = (text: string): ReadonlyArray<string> => {
  const lines = [...text.matchAll(SHELL_BLOCK)].flatMap(([, body = ""]) =>
    body
      .replaceAll(/\\\n\s*/gu, "")
      .split("\n")
      .map((line) => line.replace(/\s+#.*$/u, "").trim())
      .filter((line) => line !== "")
  )
  const cells = text
    .replaceAll(ANY_BLOCK, "")
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .flatMap((line) => spans(line.split("|")[1] ?? ""))
    .filter((span) => NOUNS.test(span))
    .map((span) => `choirctl ${span}`)
  return [...new Set([...lines, ...cells])]
}

/** What the prose calls `choirctl …`. */
export const mentionedCommands = (text: string): ReadonlyArray<string> => [
  ...new Set(spans(text.replaceAll(ANY_BLOCK, "")).filter((span) => span.startsWith("choirctl ")))
]

/** The program of a fenced block that is introduced as `name`. */
export const documentedProgram = (text: string, name: string): string => {
  const [, program] = /```js\n([\s\S]*?)```/u.exec(text.slice(text.indexOf(`\`${name}\``))) ?? []
  if (program === undefined) throw new Error(`the page has no program ${name}`)
  return program
}
