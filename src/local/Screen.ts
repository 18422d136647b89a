/** What the demo prints: the conversation as it happens, and the steps around it. */
const colours = process.stdout.isTTY && process.env["NO_COLOR"] === undefined
const paint = (code: number) => (text: string) => (colours ? `\u001b[${code}m${text}\u001b[0m` : text)
const dim = paint(2)
const bold = paint(1)
const blue = paint(34)
const green = paint(32)
const red = paint(31)

const indented = (text: string) => text.trimEnd().replaceAll("\n", "\n          ")

/** A step of the script, with the seconds since the start. */
export const step = (started: number, text: string): string =>
  dim(`[${((performance.now() - started) / 1000).toFixed(1).padStart(4)} s] ${text}`)
export const heading = (text: string): string => `\n${bold(text)}`
export const user = (text: string): string => `  ${blue("you")}     ${indented(text)}`
export const agent = (kind: string, text: string): string =>
  `  ${green((kind === "report" ? "report" : "agent").padEnd(7))} ${indented(text)}`
export const good = green
export const bad = red
