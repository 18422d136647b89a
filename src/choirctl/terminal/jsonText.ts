/** JSON for standard output. */

/** C1 controls and DEL are legal in JSON text, and some terminals obey them. */
const CONTROLS = /[\u007f-\u009f]/gu

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** One line, or indented, that decodes to the value and holds no character that a terminal obeys. */
export const jsonText = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replaceAll(CONTROLS, escaped)
