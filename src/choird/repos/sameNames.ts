/** Names within one folder that are one on some file system, where the second would replace the first. Pure. */

interface Folder {
  /** Folders in it, by their names. */
  readonly folders: Map<string, Folder>
  /** The first spelling of each name in it. */
  readonly spelled: Map<string, string>
}

export interface SameNames {
  /** Paths with a name that is another spelling of an earlier one in the same folder. */
  readonly paths: ReadonlyArray<string>
  /** Whether there are more folders than were asked for; the search then ends there. */
  readonly isLarge: boolean
}

const folder = (): Folder => ({ folders: new Map(), spelled: new Map() })

/** Compares each name with those beside it, and looks at a folder's name once for all files in it: the work grows with the bytes of the paths. */
export const sameNames = (paths: ReadonlyArray<string>, folders_max: number): SameNames => {
  const same: Array<string> = []
  const top = folder()
  let folders = 0
  /** Whether the name is the first of its kind in its folder, or spelled as that one is. */
  const isOwn = ({ spelled }: Folder, name: string) => {
    const folded = name.normalize("NFC").toLowerCase()
    const known = spelled.get(folded)
    if (known === undefined) spelled.set(folded, name)
    return known === undefined || known === name
  }
  for (const path of paths) {
    const names = path.split("/")
    const file = names.pop() ?? ""
    let here: Folder | undefined = top
    for (const name of names) {
      let next: Folder | undefined = here.folders.get(name)
      if (next === undefined && isOwn(here, name)) {
        if ((folders += 1) > folders_max) return { paths: same, isLarge: true }
        next = folder()
        here.folders.set(name, next)
      }
      here = next
      if (here === undefined) break
    }
    if (here === undefined || !isOwn(here, file)) same.push(path)
  }
  return { paths: same, isLarge: false }
}
