/** Colours, for terminals alone. */
const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const
export type Paint = keyof typeof CODES

export const paint = (color: boolean, style: Paint, text: string): string =>
  color ? `\u{1B}[${CODES[style]}m${text}\u{1B}[0m` : text
