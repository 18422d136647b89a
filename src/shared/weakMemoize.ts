/** Results that are kept for the objects that they were made of, as long as those objects live. */

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

interface Listed<Item, A> {
  readonly items: Array<Item>
  readonly made: Array<A>
}

/**
 * A function that makes a result of each item of a list, and looks only at those that differ from the list before it. Each request of a lane begins
 * with most of the one before, and its second item is the lane's own. The results are to be read before the next call, which changes their list.
 */
export const memoizeList = <Item extends object, A>(
  make: (item: Item) => A
): ((items: ReadonlyArray<Item>) => ReadonlyArray<A>) => {
  const kept = new WeakMap<Item, Listed<Item, A>>()
  return (items) => {
    const own = items[1] ?? items[0]
    if (own === undefined) return []
    const known: Listed<Item, A> = kept.get(own) ?? { items: [], made: [] }
    kept.set(own, known)
    let same = 0
    while (same < known.items.length && known.items[same] === items[same]) same++
    known.items.length = same
    known.made.length = same
    for (const item of same === 0 ? items : items.slice(same)) {
      known.items.push(item)
      known.made.push(make(item))
    }
    return known.made
  }
}

/** The sum of a measure of such lists. */
export const memoizeSum = <Item extends object>(
  measure: (item: Item) => number
): ((items: ReadonlyArray<Item>) => number) => {
  const measured = memoizeList(measure)
  return (items) => {
    let sum = 0
    for (const each of measured(items)) sum += each
    return sum
  }
}
