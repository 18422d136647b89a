/** A line for the program that started this one. */
export const print = (text: string) => process.stdout.write(`${text}\n`)
