/** Where the files are that come with Choir's code. */
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"

const nearest = (folder: string): string =>
  existsSync(join(folder, "package.json")) || dirname(folder) === folder ? folder : nearest(dirname(folder))

/** The folder of the package: the same from its source, its bundles and its library. */
export const packageFolder = nearest(import.meta.dirname)
