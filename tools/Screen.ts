/** The output of the demo: the conversation as it happens, and the steps around it. */
const colours = process.stdout.isTTY && process.env["NO_COLOR"] === undefined
const paint = (code: number) => (text: string) => (colours ? `\u001b[${code}m${text}\u001b[0m` : text)
const dim = paint(2)
const bold = paint(1)
const blue = paint(34)
const green = paint(32)
const red = paint(31)

const indented = (text: string) => text.trimEnd().replaceAll("\n", "\n          ")

const started = performance.now()

/** The seconds since the program started. */
const elapsed = (): string => ((performance.now() - started) / 1000).toFixed(1)
/** A step of the program, with the time. */
export const step = (text: string): string => dim(`[${elapsed().padStart(4)} s] ${text}`)
/** The result of a part of the demo. */
export const seen = (text: string): string => green(`You saw: ${text}`)
export const heading = (text: string): string => `\n${bold(text)}`
export const user = (text: string): string => `  ${blue("you")}     ${indented(text)}`
export const agent = (kind: string, text: string): string =>
  `  ${green((kind === "report" ? "report" : "agent").padEnd(7))} ${indented(text)}`
export const bad = red
