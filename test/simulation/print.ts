/** A line for whoever started this program. */
export const print = (text: string) => process.stdout.write(`${text}\n`)
