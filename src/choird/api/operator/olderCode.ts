/** Whether the program that runs was replaced on disk since it started, as an upgrade does that restarts nothing. */
import { statSync } from "node:fs"

const stampOf = (file: string): string | undefined => {
  const found = statSync(file, { throwIfNoEntry: false })
  return found === undefined ? undefined : `${found.ino} ${found.mtimeMs} ${found.size}`
}

/** Remembers a program's file, and says later if another one has taken its place. A file that is gone is being replaced, and says nothing. */
export const watchOwnCode = (file: string): (() => ReadonlyArray<string>) => {
  const started = stampOf(file)
  return () => {
    const now = stampOf(file)
    return started === undefined || now === undefined || now === started
      ? []
      : ["choird runs older code than was installed since it started: choirctl daemon stop && choirctl daemon start"]
  }
}
