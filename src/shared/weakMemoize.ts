/** Results that are kept for the object that they were made of, as long as that object lives. */

const isSameList = (a: ReadonlyArray<unknown>, b: ReadonlyArray<unknown>): boolean =>
  a.length === b.length && a.every((item, index) => item === b[index])

/**
 * A function that makes its result once for each first argument, which never changes, and again where the others are not the same as for the kept one.
 * Prompts and requests repeat most of the one before, so that their parts are looked up here.
 */
export const weakMemoize = <Key extends object, Others extends ReadonlyArray<unknown>, A>(
  make: (key: Key, ...others: Others) => A,
  isSame: (a: Others, b: Others) => boolean = isSameList
): ((key: Key, ...others: Others) => A) => {
  const kept = new WeakMap<Key, { readonly others: Others; readonly made: A }>()
  return (key, ...others) => {
    const before = kept.get(key)
    if (before !== undefined && isSame(before.others, others)) return before.made
    const made = make(key, ...others)
    kept.set(key, { others, made })
    return made
  }
}
