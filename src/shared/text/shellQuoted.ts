/** A word of a command that a person pastes, or that a shell runs. Pure. */

const PLAIN = /^[\w@%+=:,./-]+$/u

/** The text as one word of a POSIX shell. Text that no shell reads in its own way stays as it is. */
export const shellQuoted = (text: string): string =>
  PLAIN.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
